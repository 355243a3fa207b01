//! The small records of each company that chats and contacts refer to. Ids of the second company
//! are higher by a thousand.

use super::mix;
use crate::state::{
    ChannelAccount, ChannelKind, CustomField, Flow, Group, Id, Named, Organization, Step, Template,
    TemplateUse,
};

/// Returns the offset of a company's ids, which prevents overlaps between companies.
fn offset(company: Id) -> Id {
    if company == super::COMPANIES[0].0 { 0 } else { 1000 }
}

fn name_all(company: Id, first: Id, names: &[&str]) -> Vec<Named> {
    let first = first + offset(company);
    names.iter().zip(first..).map(|(name, id)| Named { id, name: (*name).to_owned() }).collect()
}

pub fn departments(company: Id) -> Vec<Named> {
    name_all(company, 11, &["Sales", "Suporte Técnico", "Atención al Cliente", "Finance & \"Billing\""])
}

pub fn tabulations(company: Id) -> Vec<Named> {
    name_all(company, 21, &["Resolved", "Sem retorno", "Venta realizada", "Spam / <test>"])
}

pub fn tags(company: Id) -> Vec<Named> {
    name_all(company, 31, &["vip", "urgente", "reclamação", "novo cliente 🌱", "follow-up"])
}

pub fn flows(company: Id) -> Vec<Flow> {
    let first = 51 + offset(company);
    let flows: [(&'static str, &'static [&'static str]); 3] = [
        (
            "Welcome",
            &[
                "Hello {{name}}, welcome! Your protocol is {{protocol}}.",
                "Choose an option:\n1 - Sales\n2 - Support",
            ],
        ),
        ("Pesquisa de satisfação", &["{{name}}, como você avalia nosso atendimento?"]),
        ("Silent hand-over", &[]),
    ];
    flows.into_iter().zip(first..).map(|((name, texts), id)| Flow { id, name, texts }).collect()
}

pub fn steps(company: Id) -> Vec<Step> {
    let first = 61 + offset(company);
    ["New", "Em negociação", "Won"]
        .into_iter()
        .zip(first..)
        .map(|(name, id)| Step { id, workflow: 6 + offset(company), name })
        .collect()
}

/// Returns one channel of every kind, in the order of the kinds.
pub fn channels(company: Id) -> Vec<ChannelAccount> {
    let first = 71 + offset(company);
    ChannelKind::ALL
        .into_iter()
        .zip(first..)
        .map(|(kind, id)| ChannelAccount {
            id,
            uuid: uuid(company, id),
            name: format!("{} {company}", kind.type_name()),
            kind,
        })
        .collect()
}

/// Returns a deterministic UUID of random appearance.
fn uuid(company: Id, id: Id) -> String {
    let (a, b) = (mix(company << 32 | id), mix(id << 32 | company));
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}

pub fn templates(company: Id) -> Vec<Template> {
    let first = 81 + offset(company);
    let template = |place: Id, purpose, text, params, buttons, header| Template {
        id: first + place,
        purpose,
        text,
        params,
        buttons,
        header,
    };
    vec![
        template(0, TemplateUse::Service, "Hello {{1}}, your order {{2}} is on its way.", 2, 0, None),
        template(1, TemplateUse::Marketing, "Oferta da semana: {{1}} 🎁", 1, 1, Some("image")),
        template(2, TemplateUse::Authentication, "{{1}} is your code.", 1, 1, None),
        template(3, TemplateUse::Service, "Your attendance has ended.", 0, 0, None),
        template(4, TemplateUse::Service, "The contract {{1}} is attached.", 1, 0, Some("document")),
        template(5, TemplateUse::Marketing, "New in store!", 0, 0, Some("text")),
    ]
}

pub fn groups(company: Id) -> Vec<Group> {
    let first = 91 + offset(company);
    [("VIP", Some("⭐")), ("Newsletter", None), ("Padaria & Café", Some("🥐"))]
        .into_iter()
        .zip(first..)
        .map(|((name, emoji), id)| Group { id, name, emoji })
        .collect()
}

pub fn organizations(company: Id) -> Vec<Organization> {
    let first = 101 + offset(company);
    vec![
        Organization {
            id: first,
            name: "Padaria São José Ltda.",
            cnpj: Some("12.345.678/0001-95"),
            address: Some("Rua Direita, 10"),
            city: Some("São Paulo"),
            state: Some("SP"),
            country: Some("Brasil"),
            zip_code: Some("01002-000"),
            description: Some("Pães \"artesanais\" & cafés"),
            domains: Some("padaria.example.com"),
            phone: Some("551133334444"),
        },
        Organization {
            id: first + 1,
            name: "O'Higgins & Sons",
            cnpj: None,
            address: None,
            city: Some("Cork"),
            state: None,
            country: Some("Ireland"),
            zip_code: None,
            description: None,
            domains: None,
            phone: None,
        },
    ]
}

pub fn custom_fields(company: Id) -> Vec<CustomField> {
    let first = 111 + offset(company);
    let field =
        |place: Id, name, token, description, field_type, input_type, validation, payload| CustomField {
            id: first + place,
            name,
            token,
            description,
            field_type,
            input_type,
            validation,
            payload,
        };
    let options = Some(r#"["Gold \"plus\"","Silver","Bronze"]"#);
    vec![
        field(
            0,
            "Código do cliente",
            "codigo_cliente",
            Some("As in the ERP"),
            "text",
            "text",
            r#"["required"]"#,
            None,
        ),
        field(1, "Plan", "plan", None, "select", "select", r#"["required","in:list"]"#, options),
        field(
            2,
            "Long number",
            "long_number",
            Some("More digits than a double holds"),
            "number",
            "number",
            r#"["numeric"]"#,
            None,
        ),
        field(3, "¿Acepta ofertas?", "acepta_ofertas", None, "boolean", "checkbox", "[]", None),
        field(4, "Aniversário", "aniversario", None, "date", "date", r#"["date"]"#, None),
    ]
}
