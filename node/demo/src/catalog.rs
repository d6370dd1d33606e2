//! Subjects of the example data: questions, articles, answers, models and prompts of a travel assistant.

use serde_json::{Value, json};

use crate::random::Dice;

/// Model of the assistant's answers.
pub const ANSWER_MODEL: &str = "gpt-5";
/// Model that finds out what a question is about.
pub(crate) const INTENT_MODEL: &str = "gpt-5-mini";
pub const PROMPT_NAME: &str = "Travel answer";
pub const PROMPT_SLUG: &str = "travel-answer";

/// Subject of questions, with the article that answers them.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) category: &'static str,
    /// Questions, in which `{city}` and `{booking}` are replaced.
    pub(crate) questions: &'static [&'static str],
    pub(crate) article: &'static str,
    pub(crate) title: &'static str,
    pub(crate) answer: &'static str,
    /// Answer that leaves out what matters.
    pub(crate) poor_answer: &'static str,
    /// Whether the assistant looks up the booking.
    pub(crate) needs_booking: bool,
}

pub(crate) const TOPICS: [Topic; 6] = [
    Topic {
        category: "refunds",
        questions: &[
            "I cancelled booking {booking} yesterday. When do I get my money back?",
            "Can I get a refund for {booking}? My meeting in {city} was called off.",
            "The hotel in {city} was closed when we arrived. I want my money back for {booking}.",
            "Is the fare of {booking} refundable if I cancel today?",
        ],
        article: "kb-201",
        title: "Refunds and cancellations",
        answer: "A flexible fare is refunded in full if you cancel at least 24 hours before departure. The money is on \
                 your card within 5 to 7 business days. A basic fare is not refundable, but the taxes are: I have \
                 requested them for you.",
        poor_answer: "You can cancel in the app at any time. Refunds arrive within 30 days.",
        needs_booking: true,
    },
    Topic {
        category: "changes",
        questions: &[
            "Please move booking {booking} to the following day.",
            "Can I change the name on {booking}? There is a typing error.",
            "I would like to fly to {city} a week later than booked ({booking}). What does it cost?",
        ],
        article: "kb-118",
        title: "Changes of a booking",
        answer: "Your booking can be changed once without a fee until 48 hours before departure; only the difference in \
                 fare is charged. I have put the new dates on hold for 20 minutes: confirm them in the app.",
        poor_answer: "Changes are possible in the app.",
        needs_booking: true,
    },
    Topic {
        category: "baggage",
        questions: &[
            "How many suitcases may I take to {city}?",
            "Is a folding bicycle allowed as cabin baggage?",
            "My bag did not arrive in {city}. What now?",
            "What does a second checked bag cost?",
        ],
        article: "kb-305",
        title: "Baggage",
        answer: "One cabin bag of 8 kg and one checked bag of 23 kg are included. A second bag costs 45 euros when booked \
                 online. If a bag is missing, report it at the desk in the arrival hall within 7 days and keep the \
                 reference number.",
        poor_answer: "One bag is included.",
        needs_booking: false,
    },
    Topic {
        category: "visa",
        questions: &[
            "Do I need a visa for {city} with a German passport?",
            "How long may I stay in {city} without a visa?",
            "Is a transit visa needed if I change planes in {city}?",
        ],
        article: "kb-412",
        title: "Entry rules",
        answer: "With your passport you may stay up to 90 days without a visa. It has to be valid for six months after \
                 your arrival. In transit you need no visa as long as you stay in the airport. The consulate has the \
                 last word.",
        poor_answer: "You need no visa.",
        needs_booking: false,
    },
    Topic {
        category: "hotels",
        questions: &[
            "Which hotels in {city} have a pool and allow dogs?",
            "Does breakfast belong to booking {booking}?",
            "Is late check-out possible in {city}?",
        ],
        article: "kb-520",
        title: "Hotels",
        answer: "I found three hotels that fit. Breakfast is included in the first two. Late check-out until 14:00 is \
                 free for members and costs 25 euros otherwise; ask at the reception on the evening before.",
        poor_answer: "There are several hotels. Please look at the list in the app.",
        needs_booking: false,
    },
    Topic {
        category: "disruption",
        questions: &[
            "My flight to {city} was cancelled an hour ago. Help!",
            "Our train to {city} is three hours late. Do we get compensation for {booking}?",
            "I will miss my connection in {city}. Which flight can I take instead?",
        ],
        article: "kb-077",
        title: "Delays and cancellations by the carrier",
        answer: "I am sorry. You have been moved to the next connection at 18:40, and the new boarding pass is in the \
                 app. For a delay of more than three hours you are owed 250 to 600 euros; I have prepared the claim for \
                 you to sign.",
        poor_answer: "Please ask at the desk of the carrier.",
        needs_booking: true,
    },
];

pub(crate) const CITIES: [&str; 10] =
    ["Lisbon", "Oslo", "Kyoto", "Toronto", "Marrakesh", "Naples", "Reykjavik", "Seoul", "Lima", "Cape Town"];
/// Releases of the assistant, oldest first.
pub(crate) const RELEASES: [&str; 3] = ["2026.11.1", "2026.11.2", "2026.11.3"];
const TOOL_ERRORS: [&str; 2] = [
    "TimeoutError: the booking service did not answer within 5 s",
    "BookingServiceError: 503 Service Unavailable (shard eu-3)",
];

const SYSTEM_LONG: &str = "You are the assistant of a travel agency. Answer the customer's question from the articles and the booking that \
     you are given. Say what the customer is entitled to, what it costs, and by when they have to act. If a fare has \
     exceptions, name them. If you do not know, say so and offer to hand over to a colleague.";
const SYSTEM_SHORT: &str = "You are the assistant of a travel agency. Answer in at most two sentences.";

/// Returns the instructions of a version of the prompt, counted from 0.
pub(crate) fn system_prompt(version: usize) -> &'static str {
    if version == 0 { SYSTEM_LONG } else { SYSTEM_SHORT }
}

/// Returns the versions of the prompt, oldest first.
pub(crate) fn prompts() -> Vec<Value> {
    let version = |version: usize| {
        json!({
            "prompt": {"type": "chat", "messages": [
                {"role": "system", "content": system_prompt(version)},
                {"role": "user", "content": "Articles:\n{{articles}}\n\nQuestion: {{question}}"},
            ]},
            "options": {"model": ANSWER_MODEL, "params": {"temperature": 0.2}},
        })
    };
    vec![version(0), version(1)]
}

/// Returns a question about a topic, and the number of its booking.
pub(crate) fn question(dice: &mut Dice, topic: &Topic) -> (String, String) {
    let booking = format!("TR{}", dice.between(100_000, 1_000_000));
    let city: &&str = dice.pick(&CITIES);
    let question = dice.pick(topic.questions).replace("{city}", city).replace("{booking}", &booking);
    (question, booking)
}

pub(crate) fn tool_error(dice: &mut Dice) -> &'static str {
    let error: &&'static str = dice.pick(&TOOL_ERRORS);
    error
}

/// Returns the token counts and the cost of a model call.
pub(crate) fn usage(model: &str, prompt: &str, completion: &str) -> Value {
    // Four letters a token, as in English texts.
    let tokens = |text: &str| (text.len() / 4).max(1);
    let (input, output) = (tokens(prompt), tokens(completion));
    let (input_price, output_price) = if model == ANSWER_MODEL { (1.25, 10.0) } else { (0.25, 2.0) };
    let cost = (input as f64 * input_price + output as f64 * output_price) / 1e6;
    json!({
        "prompt_tokens": input, "completion_tokens": output, "tokens": input + output, "estimated_cost": cost,
    })
}
