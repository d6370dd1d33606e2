//! Endpoints for clients, each in the wire format of one model API.

use assay_node_dialects::Dialect;

/// Operation on a Gemini model, named after the colon in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeminiVerb {
    Generate,
    StreamGenerate,
    Embed,
    BatchEmbed,
    CountTokens,
}

impl GeminiVerb {
    pub const ALL: [GeminiVerb; 5] = [
        GeminiVerb::Generate,
        GeminiVerb::StreamGenerate,
        GeminiVerb::Embed,
        GeminiVerb::BatchEmbed,
        GeminiVerb::CountTokens,
    ];

    pub fn name(self) -> &'static str {
        match self {
            GeminiVerb::Generate => "generateContent",
            GeminiVerb::StreamGenerate => "streamGenerateContent",
            GeminiVerb::Embed => "embedContent",
            GeminiVerb::BatchEmbed => "batchEmbedContents",
            GeminiVerb::CountTokens => "countTokens",
        }
    }

    pub fn parse(name: &str) -> Option<GeminiVerb> {
        GeminiVerb::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// Endpoint of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEndpoint {
    Chat,
    Completions,
    Embeddings,
    Moderations,
    Responses,
    /// Messages in the format of Anthropic.
    Messages,
    /// Token count of a messages request in the format of Anthropic.
    CountTokens,
    Gemini(GeminiVerb),
    /// Another path below the base URL of an OpenAI-compatible server, with a leading slash.
    Path(String),
}

impl ClientEndpoint {
    /// Returns the wire format of errors, and of conversations if the endpoint has any.
    pub fn dialect(&self) -> Dialect {
        match self {
            ClientEndpoint::Responses => Dialect::Responses,
            ClientEndpoint::Messages | ClientEndpoint::CountTokens => Dialect::Anthropic,
            ClientEndpoint::Gemini(_) => Dialect::Gemini,
            _ => Dialect::Chat,
        }
    }

    /// Returns whether a call is a conversation, which can be translated between all wire formats.
    pub fn is_conversation(&self) -> bool {
        matches!(
            self,
            ClientEndpoint::Chat
                | ClientEndpoint::Responses
                | ClientEndpoint::Messages
                | ClientEndpoint::Gemini(GeminiVerb::Generate | GeminiVerb::StreamGenerate)
        )
    }

    /// Returns whether the model writes an answer, as opposed to embeddings, categories or counts.
    pub fn generates(&self) -> bool {
        !matches!(
            self,
            ClientEndpoint::Embeddings
                | ClientEndpoint::Moderations
                | ClientEndpoint::CountTokens
                | ClientEndpoint::Gemini(GeminiVerb::Embed | GeminiVerb::BatchEmbed | GeminiVerb::CountTokens)
        )
    }

    /// Returns whether answers report their usage. A call without one is free.
    pub fn reports_usage(&self) -> bool {
        self.is_conversation() || matches!(self, ClientEndpoint::Completions | ClientEndpoint::Embeddings)
    }

    /// Returns whether repeating a call has no effect besides its price.
    ///
    /// Such a call may be retried although the first attempt may have been executed.
    pub fn is_repeatable(&self) -> bool {
        !self.generates()
    }

    /// Returns the name of a call's span (1.9).
    pub fn span_name(&self) -> &'static str {
        match self {
            ClientEndpoint::Chat | ClientEndpoint::Messages => "Chat Completion",
            ClientEndpoint::Gemini(GeminiVerb::Generate | GeminiVerb::StreamGenerate) => "Chat Completion",
            ClientEndpoint::Completions => "Completion",
            ClientEndpoint::Responses => "Response",
            ClientEndpoint::Embeddings | ClientEndpoint::Gemini(GeminiVerb::Embed | GeminiVerb::BatchEmbed) => {
                "Embedding"
            }
            ClientEndpoint::Moderations => "Moderation",
            ClientEndpoint::CountTokens | ClientEndpoint::Gemini(GeminiVerb::CountTokens) | ClientEndpoint::Path(_) => {
                "LLM"
            }
        }
    }
}
