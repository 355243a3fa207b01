//! All human-readable texts of the service's `{reason}`, in its three languages. The caller chooses
//! the status.

use super::Side;

/// The languages of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lang {
    En,
    PtBr,
    Es,
}

impl Lang {
    /// Returns the supported language that an `Accept-Language` header prefers, by default English.
    pub fn negotiate(header: Option<&str>) -> Lang {
        let mut best = (Lang::En, 0.0);
        for part in header.unwrap_or_default().split(',') {
            let mut words = part.split(';').map(str::trim);
            let tag = words.next().unwrap_or_default();
            let weight = words.find_map(|w| w.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
            if let Some(lang) = Lang::of_tag(tag)
                // The first of equal weights wins.
                && weight > best.1
            {
                best = (lang, weight);
            }
        }
        best.0
    }

    fn of_tag(tag: &str) -> Option<Lang> {
        let primary = tag.split('-').next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "en" => Some(Lang::En),
            "pt" => Some(Lang::PtBr),
            "es" => Some(Lang::Es),
            _ => None,
        }
    }
}

/// A kind of resource that an id can fail to identify.
#[derive(Clone, Copy, Debug)]
pub enum Thing {
    Chat,
    Agent,
    Contact,
    Department,
    Tabulation,
    Flow,
    Step,
    Company,
    Feedback,
    Template,
    Channel,
}

/// The expected type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    String,
    Integer,
    Boolean,
    Object,
    Array,
}

/// The reason for a rejected request, or the outcome of a flow execution.
#[derive(Clone, Debug)]
pub enum Reason {
    UnknownPath,
    WrongMethod,
    TokenMissing,
    TokenWrong,
    CompanyForbidden,
    ChatForbidden,
    Missing(&'static str),
    WrongType(&'static str, Expect),
    WrongValue(&'static str),
    NotFound(Thing),
    BodyMalformed,
    BodyTooLarge,
    BodyNotObject,
    PageWrong,
    ChatLocked,
    ChatClosed,
    ChatInternal,
    ChatNotFinished,
    ChatNotInAttendance,
    OnlyAdministrator,
    GuestCannotAdd,
    FileType,
    TemplateParams { wanted: usize, given: usize },
    TemplateUnsupported,
    AgentSignedIn(Side),
    LoginTaken,
    NeedOneOf(&'static str),
    PhoneInvalid,
    NeverServed,
    ChannelUnsuited,
    FlowStarted,
    FlowNotRun,
}

impl Reason {
    /// Returns the text in one language.
    pub fn text(&self, lang: Lang) -> String {
        let pick = |en: &str, pt: &str, es: &str| match lang {
            Lang::En => en.to_owned(),
            Lang::PtBr => pt.to_owned(),
            Lang::Es => es.to_owned(),
        };
        match self {
            Reason::UnknownPath => {
                pick("This address does not exist.", "Este endereço não existe.", "Esta dirección no existe.")
            }
            Reason::WrongMethod => pick(
                "This method is not available at this address.",
                "Este método não está disponível neste endereço.",
                "Este método no está disponible en esta dirección.",
            ),
            Reason::TokenMissing => pick(
                "An access token is required.",
                "É necessário um token de acesso.",
                "Se requiere un token de acceso.",
            ),
            Reason::TokenWrong => pick(
                "The access token is invalid or has expired.",
                "O token de acesso é inválido ou expirou.",
                "El token de acceso no es válido o ha caducado.",
            ),
            Reason::CompanyForbidden => pick(
                "You have no access to this company.",
                "Você não tem acesso a esta empresa.",
                "No tiene acceso a esta empresa.",
            ),
            Reason::ChatForbidden => pick(
                "You have no permission to access this chat.",
                "Você não tem permissão para acessar este atendimento.",
                "No tiene permiso para acceder a este chat.",
            ),
            Reason::Missing(field) => match lang {
                Lang::En => format!("The field '{field}' is required."),
                Lang::PtBr => format!("O campo '{field}' é obrigatório."),
                Lang::Es => format!("El campo '{field}' es obligatorio."),
            },
            Reason::WrongType(field, expect) => wrong_type(field, *expect, lang),
            Reason::WrongValue(field) => match lang {
                Lang::En => format!("The value of '{field}' is not allowed."),
                Lang::PtBr => format!("O valor de '{field}' não é permitido."),
                Lang::Es => format!("El valor de '{field}' no está permitido."),
            },
            Reason::NotFound(thing) => not_found(*thing, lang),
            Reason::BodyMalformed => pick(
                "The request body is not valid JSON.",
                "O corpo da requisição não é um JSON válido.",
                "El cuerpo de la solicitud no es un JSON válido.",
            ),
            Reason::BodyTooLarge => pick(
                "The request body is too large.",
                "O corpo da requisição é grande demais.",
                "El cuerpo de la solicitud es demasiado grande.",
            ),
            Reason::BodyNotObject => pick(
                "The request body must be a JSON object.",
                "O corpo da requisição deve ser um objeto JSON.",
                "El cuerpo de la solicitud debe ser un objeto JSON.",
            ),
            Reason::PageWrong => pick(
                "The page must be an integer from 0.",
                "A página deve ser um número inteiro a partir de 0.",
                "La página debe ser un número entero a partir de 0.",
            ),
            Reason::ChatLocked => pick(
                "This chat is locked at the moment.",
                "Este atendimento está bloqueado no momento.",
                "Este chat está bloqueado en este momento.",
            ),
            Reason::ChatClosed => pick(
                "This chat is already finished.",
                "Este atendimento já foi finalizado.",
                "Este chat ya está finalizado.",
            ),
            Reason::ChatInternal => pick(
                "This is not possible in an internal chat.",
                "Isto não é possível em um chat interno.",
                "Esto no es posible en un chat interno.",
            ),
            Reason::ChatNotFinished => pick(
                "Only finished chats can be deleted.",
                "Somente atendimentos finalizados podem ser excluídos.",
                "Solo se pueden eliminar chats finalizados.",
            ),
            Reason::ChatNotInAttendance => pick(
                "Only chats in attendance by an agent can be queued.",
                "Somente atendimentos em andamento por um agente podem ir para a fila.",
                "Solo los chats atendidos por un agente pueden ponerse en cola.",
            ),
            Reason::OnlyAdministrator => pick(
                "Only an administrator can delete a chat.",
                "Somente um administrador pode excluir um atendimento.",
                "Solo un administrador puede eliminar un chat.",
            ),
            Reason::GuestCannotAdd => pick(
                "A guest agent cannot add other agents.",
                "Um agente convidado não pode adicionar outros agentes.",
                "Un agente invitado no puede agregar otros agentes.",
            ),
            Reason::FileType => pick(
                "This type of file is not allowed.",
                "Este tipo de arquivo não é permitido.",
                "Este tipo de archivo no está permitido.",
            ),
            Reason::TemplateParams { wanted, given } => match lang {
                Lang::En => format!("The template takes {wanted} parameters, {given} were given."),
                Lang::PtBr => format!("O modelo exige {wanted} parâmetros, foram informados {given}."),
                Lang::Es => format!("La plantilla requiere {wanted} parámetros, se indicaron {given}."),
            },
            Reason::TemplateUnsupported => pick(
                "This template is not supported on the channel of the chat.",
                "Este modelo não é suportado no canal do atendimento.",
                "Esta plantilla no es compatible con el canal del chat.",
            ),
            Reason::AgentSignedIn(Side::V2) => pick(
                "The agent is already logged in.",
                "O agente já está logado.",
                "El agente ya ha iniciado sesión.",
            ),
            Reason::AgentSignedIn(_) => pick(
                "There is already an agent signed in with this e-mail.",
                "Já existe um agente cadastrado com este e-mail.",
                "Ya existe un agente registrado con este correo.",
            ),
            Reason::LoginTaken => pick(
                "Another agent uses this login.",
                "Outro agente usa este login.",
                "Otro agente usa este usuario.",
            ),
            Reason::NeedOneOf(fields) => match lang {
                Lang::En => format!("At least one of {fields} is required."),
                Lang::PtBr => format!("É necessário pelo menos um de {fields}."),
                Lang::Es => format!("Se requiere al menos uno de {fields}."),
            },
            Reason::PhoneInvalid => pick(
                "The phone number of the contact must hold country code, area code and number, digits only.",
                "O telefone do contato deve conter código do país, DDD e número, somente dígitos.",
                "El teléfono del contacto debe contener código de país, código de área y número, solo dígitos.",
            ),
            Reason::NeverServed => pick(
                "The contact has never been served through this channel.",
                "O contato nunca foi atendido por este canal.",
                "El contacto nunca fue atendido por este canal.",
            ),
            Reason::ChannelUnsuited => pick(
                "This channel cannot be used for this operation.",
                "Este canal não pode ser usado nesta operação.",
                "Este canal no se puede usar en esta operación.",
            ),
            Reason::FlowStarted => {
                pick("The flow was started.", "O fluxo foi iniciado.", "El flujo se ha iniciado.")
            }
            Reason::FlowNotRun => pick(
                "The flow was not run because of the situation of the chat.",
                "O fluxo não foi executado devido à situação do atendimento.",
                "El flujo no se ejecutó debido a la situación del chat.",
            ),
        }
    }
}

fn wrong_type(field: &str, expect: Expect, lang: Lang) -> String {
    let (en, pt, es) = match expect {
        Expect::String => ("a string", "um texto", "un texto"),
        Expect::Integer => ("an integer", "um número inteiro", "un número entero"),
        Expect::Boolean => ("a boolean", "um booleano", "un booleano"),
        Expect::Object => ("an object", "um objeto", "un objeto"),
        Expect::Array => ("an array", "uma lista", "una lista"),
    };
    match lang {
        Lang::En => format!("The field '{field}' must be {en}."),
        Lang::PtBr => format!("O campo '{field}' deve ser {pt}."),
        Lang::Es => format!("El campo '{field}' debe ser {es}."),
    }
}

fn not_found(thing: Thing, lang: Lang) -> String {
    let (en, pt, es) = match thing {
        Thing::Chat => ("Chat not found.", "Atendimento não encontrado.", "Chat no encontrado."),
        Thing::Agent => ("Agent not found.", "Agente não encontrado.", "Agente no encontrado."),
        Thing::Contact => ("Contact not found.", "Contato não encontrado.", "Contacto no encontrado."),
        Thing::Department => {
            ("Department not found.", "Departamento não encontrado.", "Departamento no encontrado.")
        }
        Thing::Tabulation => {
            ("Tabulation not found.", "Tabulação não encontrada.", "Tabulación no encontrada.")
        }
        Thing::Flow => ("Flow not found.", "Fluxo não encontrado.", "Flujo no encontrado."),
        Thing::Step => ("Workflow step not found.", "Etapa não encontrada.", "Etapa no encontrada."),
        Thing::Company => ("Company not found.", "Empresa não encontrada.", "Empresa no encontrada."),
        Thing::Feedback => {
            ("There is no survey answer.", "Não há resposta da pesquisa.", "No hay respuesta de la encuesta.")
        }
        Thing::Template => ("Template not found.", "Modelo não encontrado.", "Plantilla no encontrada."),
        Thing::Channel => ("Channel not found.", "Canal não encontrado.", "Canal no encontrado."),
    };
    match lang {
        Lang::En => en,
        Lang::PtBr => pt,
        Lang::Es => es,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_the_best_weighted_one_we_speak() {
        for (header, lang) in [
            (None, Lang::En),
            (Some("pt-br"), Lang::PtBr),
            (Some("pt-BR,pt;q=0.9,en;q=0.8"), Lang::PtBr),
            (Some("es-AR"), Lang::Es),
            (Some("fr, es;q=0.3, en;q=0.2"), Lang::Es),
            (Some("fr"), Lang::En),
            (Some("en;q=0.1, es;q=0"), Lang::En),
            (Some(";;q=,,"), Lang::En),
        ] {
            assert_eq!(Lang::negotiate(header), lang, "{header:?}");
        }
    }
}
