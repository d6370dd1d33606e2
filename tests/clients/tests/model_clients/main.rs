//! What SDKs and frameworks read from the scripted providers, from LiteLLM's proxy, and from both through the gateway. If a
//! language or a package index is unavailable this reports "not covered" and passes, unless ASSAY_REQUIRE=all.

mod differences;
mod gateway;
mod litellm;
mod scripts;

use assay_test_clients::suite::covered;
use assay_test_providers::ProviderServer;

use crate::gateway::{NATIVE_MODEL, gateway_node};
use crate::litellm::LiteLlmProxy;
use crate::scripts::{ClientScripts, FoundValues, WantedValues, differing};

fn provider() -> ProviderServer {
    ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"))
}

/// Panics with the scenarios in which a client read something else.
fn check(name: &str, found: &FoundValues) {
    let compared = differing(found, &WantedValues::load(), |_, _, _| None);
    println!("{name}: {} of {} scenarios", compared.same, compared.all);
    assert!(compared.differing.is_empty(), "{name}:\n{}", compared.differing.join("\n"));
}

#[test]
#[ignore = "installs SDKs; .ci/run runs it"]
fn clients_read_what_scripted_providers_answer() {
    let Some(scripts) = covered("SDKs and frameworks", ClientScripts::installed()) else { return };
    let provider = provider();
    check("providers", &scripts.run_all((&provider.origin(), "key"), &[NATIVE_MODEL], &[NATIVE_MODEL]));
    let sent = provider.requests();
    assert!(sent.iter().all(|request| request.method == "POST"), "{sent:?}");
}

#[test]
#[ignore = "installs SDKs; .ci/run runs it"]
fn clients_read_through_the_gateway_what_providers_answer() {
    let Some(scripts) = covered("SDKs and frameworks", ClientScripts::installed()) else { return };
    let provider = provider();
    let proxy =
        LiteLlmProxy::start(scripts.frameworks(), &provider.origin()).unwrap_or_else(|error| panic!("{error:#}"));
    let mut node = gateway_node(&provider.origin(), Some(&proxy.origin()));
    let found = scripts.run_all(node.caller(), &gateway::CHAT_MODELS, &gateway::EMBEDDING_MODELS);
    let compared = differing(&found, &WantedValues::load(), differences::allowed);
    println!("gateway: {} of {} scenarios, {} differ as listed", compared.same, compared.all, compared.allowed.len());
    let unused = differences::unused(&compared.allowed);
    node.assert_lives();
    assert!(compared.differing.is_empty(), "{}\nthe node said:\n{}", compared.differing.join("\n"), node.log());
    assert!(unused.is_empty(), "no client differs so any more: {unused:?}");
}

#[test]
#[ignore = "installs SDKs; .ci/run runs it"]
fn mock_models_of_litellm_answer_through_the_gateway_as_directly() {
    let Some(scripts) = covered("SDKs and frameworks", ClientScripts::installed()) else { return };
    let provider = provider();
    let proxy =
        LiteLlmProxy::start(scripts.frameworks(), &provider.origin()).unwrap_or_else(|error| panic!("{error:#}"));
    let node = gateway_node(&provider.origin(), Some(&proxy.origin()));
    let directly = scripts.mocked((&proxy.origin(), litellm::KEY));
    assert_eq!(directly, litellm::mocked_values());
    assert_eq!(scripts.mocked(node.caller()), directly, "{}", node.log());
}

#[test]
#[ignore = "installs SDKs; .ci/run runs it"]
fn calls_of_official_sdks_leave_spans() {
    let Some(scripts) = covered("SDKs and frameworks", ClientScripts::installed()) else { return };
    let provider = provider();
    let node = gateway_node(&provider.origin(), None);
    scripts.spans(node.caller()).unwrap_or_else(|error| panic!("{error:#}\nthe node said:\n{}", node.log()));
}
