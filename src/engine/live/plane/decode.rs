//! Bodies of calls to what they ask for. A value of the wrong kind is refused in the words of the server that this
//! stands in for; keys count in whatever case they are written, unknown ones are let pass, and `null` says nothing.

use super::json::Json;
use super::refusal::Refusal;
use super::registry::ProxyInput;
use super::toxics::ToxicInput;

/// What a list of proxies is called where it is none.
const LIST: &str = r#"[]struct { toxiproxy.Proxy; Enabled *bool "json:\"enabled\"" }"#;

/// The body of a call that makes or changes a proxy.
///
/// # Errors
/// What is wrong with it.
pub fn proxy(body: &[u8]) -> Result<ProxyInput, Refusal> {
    let json = parse(body)?;
    let entries = object(&json, "Go value of type toxiproxy.Proxy")?;
    proxy_of(entries, "Proxy")
}

/// The body of a call that makes many.
///
/// # Errors
/// What is wrong with it.
pub fn proxies(body: &[u8]) -> Result<Vec<ProxyInput>, Refusal> {
    match parse(body)? {
        Json::Null => Ok(Vec::new()),
        Json::List(items) => items
            .iter()
            .map(|item| {
                let entries = object(item, &format!("Go value of type {}", &LIST[2..]))?;
                let mut input = proxy_of(entries, "")?;
                if let Some((_, toxics)) = entries.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case("toxics")) {
                    input.toxics = toxics_of(toxics)?;
                }
                Ok(input)
            })
            .collect(),
        other => Err(mismatch(&other, &format!("Go value of type {LIST}"))),
    }
}

/// The body of a call that adds a toxic.
///
/// # Errors
/// What is wrong with it.
pub fn toxic(body: &[u8]) -> Result<ToxicInput, Refusal> {
    let json = parse(body)?;
    toxic_of(object(&json, "Go value of type toxics.ToxicWrapper")?)
}

/// The body of a call that changes one: only attributes and toxicity count.
///
/// # Errors
/// What is wrong with it.
pub fn toxic_change(body: &[u8]) -> Result<ToxicInput, Refusal> {
    let json = parse(body)?;
    let mut input = ToxicInput::default();
    for (key, value) in object(&json, "Go value of type toxics.ToxicWrapper")? {
        match key.to_ascii_lowercase().as_str() {
            "attributes" => input.attributes = Some(value.clone()),
            "toxicity" => set(&mut input.toxicity, number(value, ".toxicity")?),
            _ => {}
        }
    }
    Ok(input)
}

fn parse(body: &[u8]) -> Result<Json, Refusal> {
    Json::parse(body).map_err(|error| Refusal::body(&error))
}

fn mismatch(found: &Json, wanted: &str) -> Refusal {
    Refusal::body(&format!("json: cannot unmarshal {} into {wanted}", found.kind()))
}

fn object<'a>(json: &'a Json, wanted: &str) -> Result<&'a [(String, Json)], Refusal> {
    match json {
        Json::Map(entries) => Ok(entries),
        Json::Null => Ok(&[]),
        other => Err(mismatch(other, wanted)),
    }
}

fn proxy_of(entries: &[(String, Json)], owner: &str) -> Result<ProxyInput, Refusal> {
    let mut input = ProxyInput::default();
    for (key, value) in entries {
        match key.to_ascii_lowercase().as_str() {
            "name" => set(&mut input.name, text(value, &format!("{owner}.name"))?),
            "listen" => set(&mut input.listen, text(value, &format!("{owner}.listen"))?),
            "upstream" => set(&mut input.upstream, text(value, &format!("{owner}.upstream"))?),
            "enabled" => set(&mut input.enabled, truth(value, &format!("{owner}.enabled"))?),
            _ => {}
        }
    }
    Ok(input)
}

fn toxics_of(json: &Json) -> Result<Vec<ToxicInput>, Refusal> {
    match json {
        Json::Null => Ok(Vec::new()),
        Json::List(items) => items.iter().map(|item| toxic_of(object(item, "Go value of type toxics.ToxicWrapper")?)).collect(),
        other => Err(mismatch(other, "Go struct field .toxics of type []toxics.ToxicWrapper")),
    }
}

fn toxic_of(entries: &[(String, Json)]) -> Result<ToxicInput, Refusal> {
    let mut input = ToxicInput::default();
    let mut kind = None;
    for (key, value) in entries {
        match key.to_ascii_lowercase().as_str() {
            "name" => set(&mut input.name, text(value, "ToxicWrapper.name")?),
            "type" => set(&mut kind, text(value, "ToxicWrapper.type")?),
            "stream" => set(&mut input.stream, text(value, "ToxicWrapper.stream")?),
            "toxicity" => set(&mut input.toxicity, number(value, "ToxicWrapper.toxicity")?),
            "attributes" => input.attributes = Some(value.clone()),
            _ => {}
        }
    }
    Ok(ToxicInput { kind: kind.unwrap_or_default(), ..input })
}

/// What is said takes the place of what was; nothing leaves it.
fn set<T>(field: &mut Option<T>, said: Option<T>) {
    if said.is_some() {
        *field = said;
    }
}

fn text(value: &Json, field: &str) -> Result<Option<String>, Refusal> {
    match value {
        Json::Null => Ok(None),
        Json::Text(text) => Ok(Some(text.clone())),
        other => Err(mismatch(other, &format!("Go struct field {field} of type string"))),
    }
}

fn truth(value: &Json, field: &str) -> Result<Option<bool>, Refusal> {
    match value {
        Json::Null => Ok(None),
        Json::Bool(truth) => Ok(Some(*truth)),
        other => Err(mismatch(other, &format!("Go struct field {field} of type bool"))),
    }
}

fn number(value: &Json, field: &str) -> Result<Option<f64>, Refusal> {
    let wanted = format!("Go struct field {field} of type float32");
    match value {
        Json::Null => Ok(None),
        Json::Number(text) => match text.parse::<f64>() {
            Ok(number) if number.abs() <= f64::from(f32::MAX) => Ok(Some(number)),
            _ => Err(Refusal::body(&format!("json: cannot unmarshal number {text} into {wanted}"))),
        },
        other => Err(mismatch(other, &wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_any_case_and_the_rest_is_let_pass() {
        let input = proxy(br#"{"Name":"a","UPSTREAM":"u","listen":null,"enabled":false,"Logger":{},"toxics":5}"#).unwrap();
        let wanted =
            ProxyInput { name: Some("a".into()), upstream: Some("u".into()), enabled: Some(false), ..ProxyInput::default() };
        assert_eq!(input, wanted);
        assert_eq!(proxy(b"null"), Ok(ProxyInput::default()));
        let many = proxies(br#"[{"name":"a","toxics":[{"type":"noop","toxicity":0.5}]},{}]"#).unwrap();
        assert_eq!((many.len(), many[0].toxics[0].kind.as_str(), many[0].toxics[0].toxicity), (2, "noop", Some(0.5)));
        let change = toxic_change(br#"{"type":"x","toxicity":0.5,"toxicity":null}"#).unwrap();
        assert_eq!(change, ToxicInput { toxicity: Some(0.5), ..ToxicInput::default() });
    }

    #[test]
    fn what_is_of_the_wrong_kind_is_said_in_known_words() {
        type Reads = fn(&[u8]) -> Option<Refusal>;
        let (one, many): (Reads, Reads) = (|body| proxy(body).err(), |body| proxies(body).err());
        let (new, change): (Reads, Reads) = (|body| toxic(body).err(), |body| toxic_change(body).err());
        for (read, body, said) in [
            (one, r#"{"name":1}"#, "number into Go struct field Proxy.name of type string"),
            (one, r#"{"enabled":"x"}"#, "string into Go struct field Proxy.enabled of type bool"),
            (one, "[]", "array into Go value of type toxiproxy.Proxy"),
            (
                many,
                r#"{"p":1}"#,
                r#"object into Go value of type []struct { toxiproxy.Proxy; Enabled *bool "json:\"enabled\"" }"#,
            ),
            (many, r#"[{"name":[]}]"#, "array into Go struct field .name of type string"),
            (many, r#"[{"toxics":1}]"#, "number into Go struct field .toxics of type []toxics.ToxicWrapper"),
            (new, r#"{"type":true}"#, "bool into Go struct field ToxicWrapper.type of type string"),
            (new, r#"{"toxicity":1e99}"#, "number 1e99 into Go struct field ToxicWrapper.toxicity of type float32"),
            (change, r#"{"toxicity":"x"}"#, "string into Go struct field .toxicity of type float32"),
        ] {
            let refusal = read(body.as_bytes()).expect(body);
            assert_eq!((refusal.status, refusal.error), (400, format!("bad request body: json: cannot unmarshal {said}")));
        }
        assert_eq!(proxy(b"").unwrap_err().error, "bad request body: EOF");
    }
}
