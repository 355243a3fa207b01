//! The shapes of a pack, in both directions, each built as a route would build it.

use crate::support::values::{Fill, Generator};
use proptest::prelude::*;
use std::sync::Arc;
use switchback_compiler::contract::{Contract, TypeIn, TypeKind};
use switchback_compiler::diagnostic::{self, Colour, Findings, Sources};
use switchback_compiler::mapping::ast::{self, Program, Spanned};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::lens::{Lens, Lenses, Supply, World};
use switchback_compiler::mapping::load::{self, PackSource};
use switchback_compiler::mapping::names::Names;
use switchback_engine::translate::stream::{Bounds, Check, Program as Stream, Transcoder, Values};
use switchback_engine::translate::{Env, Settings, TranslateError, document, overlay};
use switchback_json::{Limits, Value};
use switchback_plan::{Loss, Pack, SettingKind, SideId};

/// A pack that was read and compiled.
pub struct Loaded {
    program: Program,
    contracts: [Contract; 2],
    sources: Sources,
    pack: Arc<Pack>,
}

/// A named shape.
pub struct Shape<'a> {
    pub name: String,
    pub sides: [&'a str; 2],
    pub types: [TypeIn<'a>; 2],
    /// By the side that is built; none where a value that may be there cannot stand on the other side.
    pub ways: [Option<Way>; 2],
    /// The same, laid over an old value.
    pub over: [Option<Way>; 2],
    /// By side, members that show a place of the other side a second time.
    pub copies: [Vec<String>; 2],
}

/// A shape in one direction.
pub struct Way {
    pub lens: Lens,
    pub how: How,
    settings: Arc<Settings>,
    supplies: Vec<BoxedStrategy<Value>>,
}

/// What a direction needs to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The value that is read.
    Alone,
    /// Besides, fields that a route supplies.
    Supplied,
    /// An old value of the side that is built.
    Over,
}

/// Number of shapes in the compiled pack.
pub fn compiled(source: &PackSource) -> usize {
    Loaded::of(source).pack.shapes.len()
}

impl Loaded {
    pub fn of(source: &PackSource) -> Loaded {
        let compiled = compile(source);
        let text = diagnostic::to_text(&compiled.sources, &compiled.findings, Colour::Never);
        let pack = compiled.pack.unwrap_or_else(|| panic!("the pack does not compile:\n{text}"));
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let (program, contracts) =
            load::read(source, &mut sources, &mut findings).expect("it was read before");
        Loaded { program, contracts, sources, pack }
    }

    /// Calls `each` with every shape that the compiled pack has.
    pub fn shapes(&self, mut each: impl FnMut(&Shape<'_>)) {
        let mut findings = Findings::new();
        let names = Names::collect(&self.program, &mut findings);
        let world = World {
            program: &self.program,
            contracts: &self.contracts,
            names: &names,
            sources: &self.sources,
        };
        let lenses = Lenses::check(world, &mut findings);
        assert!(!findings.has_errors());
        for compiled in &self.pack.shapes {
            let ways = [SideId::OLD, SideId::NEW].map(|to| {
                let way = self.way(&lenses, &compiled.name, to);
                if let Some(plan) = &compiled.to[usize::from(to.0)] {
                    let way = way.as_ref().expect("the compiler built it alone");
                    let places = |losses: &[Loss]| {
                        losses.iter().map(|l| (l.place.clone(), l.instead.clone())).collect::<Vec<_>>()
                    };
                    assert_eq!(places(&plan.losses), places(&way.lens.losses), "{}", compiled.name);
                }
                way
            });
            let over = [SideId::OLD, SideId::NEW].map(|to| {
                let over = Supply { over: true, ..Supply::default() };
                let lens = lenses.lens(&compiled.name, to, &over, &mut Findings::new());
                lens.map(|lens| Way { lens, how: How::Over, settings: self.settings(), supplies: Vec::new() })
            });
            let types = lenses.types(&compiled.name).expect("a compiled shape has types");
            let [old, new] = &self.program.manifest.sides;
            let sides = [old.value.as_str(), new.value.as_str()];
            let copies = [0, 1].map(|side| self.copies(self.shape(&compiled.name), side));
            each(&Shape { name: compiled.name.clone(), sides, types, ways, over, copies });
        }
    }

    /// The first of the ways that builds.
    fn way(&self, lenses: &Lenses<'_>, name: &str, to: SideId) -> Option<Way> {
        let ty = lenses.types(name).expect("a compiled shape has types")[usize::from(to.0)];
        let left = self.left_to_routes(name, ty, to);
        let tries = [
            (How::Alone, Supply::default()),
            (How::Supplied, Supply { with: left, ..Supply::default() }),
            (How::Over, Supply { over: true, ..Supply::default() }),
        ];
        for (how, supply) in tries {
            let Some(lens) = lenses.lens(name, to, &supply, &mut Findings::new()) else { continue };
            let generator = Generator {
                types: ty.types,
                fill: Fill::Any,
                narrow: &|_, plain| plain,
                must: &|_| false,
                single: &|_| false,
                extras: &|_| true,
            };
            let of_field = |field: &switchback_plan::Key| {
                let declared = fields(ty).iter().find(|one| one.name == *field.text);
                let field = declared.expect("supplied fields are declared");
                generator.value(&field.ty)
            };
            let supplies = lens.supplied.iter().map(of_field).collect();
            return Some(Way { lens, how, settings: self.settings(), supplies });
        }
        None
    }

    /// Required fields that no line gives a value.
    fn left_to_routes(&self, name: &str, ty: TypeIn<'_>, side: SideId) -> Vec<Spanned<String>> {
        let shape = self.shape(name);
        let given: Vec<&str> = self.given(shape, usize::from(side.0));
        let fields =
            fields(ty).iter().filter(|field| field.required && !given.contains(&field.name.as_str()));
        let span = shape.span;
        fields.map(|field| Spanned { value: field.name.clone(), span }).collect()
    }

    /// Members of a side that a shape's lines, or those of the shape it is like, give a value.
    fn given<'s>(&'s self, shape: &'s ast::Shape, side: usize) -> Vec<&'s str> {
        let renamed = shape.rename.iter().map(|line| if side == 0 { &line.old } else { &line.new });
        let by_kind = shape.by_kind.iter().flat_map(|line| match side {
            0 => vec![&line.old],
            _ => line.new.iter().map(|(_, place)| place).collect(),
        });
        let only = shape
            .only
            .iter()
            .filter(|only| only.side.side == side && !matches!(only.fill, ast::Fill::Nothing));
        let places =
            renamed.chain(by_kind).chain(only.map(|only| &only.place)).map(|place| place.value.0[0].as_str());
        let copies =
            shape.copy.iter().filter(|copy| copy.to.side == side).map(|copy| copy.name.value.as_str());
        let fixed = shape.constant.iter().map(|constant| constant.name.value.as_str());
        let same = shape.same.iter().map(|name| name.value.as_str());
        let like =
            shape.like.as_ref().map(|like| self.given(self.shape(&like.value), side)).unwrap_or_default();
        same.chain(places).chain(copies).chain(fixed).chain(like).collect()
    }

    fn copies(&self, shape: &ast::Shape, side: usize) -> Vec<String> {
        let own = shape.copy.iter().filter(|copy| copy.to.side == side).map(|copy| copy.name.value.clone());
        let like =
            shape.like.as_ref().map(|like| self.copies(self.shape(&like.value), side)).unwrap_or_default();
        own.chain(like).collect()
    }

    fn shape(&self, name: &str) -> &ast::Shape {
        let named = |shape: &&ast::Shape| shape.name.as_ref().is_some_and(|have| have.value == name);
        self.program.shapes.iter().find(named).expect("the pack was compiled out of this program")
    }

    /// A value for every setting, as an operator gives them.
    fn settings(&self) -> Arc<Settings> {
        let given = self.pack.settings.iter().map(|setting| {
            let value = match setting.kind {
                SettingKind::Boolean => Value::from(true),
                SettingKind::Integer => Value::from(5),
                SettingKind::String => Value::string(setting.values.first().map_or("given", String::as_str)),
                SettingKind::Date => Value::string("2027-01-31"),
            };
            (setting.name.as_str(), value)
        });
        let settings = Settings::new(&self.pack, &Value::Object(given.collect()));
        settings.expect("every setting has a value of its kind").into()
    }
}

/// The declared members of a type; of one of several objects, none that all of them have.
fn fields(ty: TypeIn<'_>) -> &[switchback_compiler::contract::Field] {
    match ty.types.resolve(ty.ty).kind {
        TypeKind::Object(object) => &object.fields,
        TypeKind::Choice(_) => &[],
        _ => panic!("shapes relate objects"),
    }
}

impl Way {
    /// Values for the fields that a route supplies.
    pub fn supplies(&self) -> BoxedStrategy<Vec<Value>> {
        self.supplies.clone().boxed()
    }

    /// The value on the other side, laid over `old` where it must be.
    pub fn run(&self, value: &Value, old: Option<&Value>, supplied: &[Value]) -> Value {
        self.try_run(value, old, supplied).unwrap_or_else(|why| panic!("{why:?} in {value}"))
    }

    /// The same, where the value may be one that the shape does not take.
    pub fn try_run(
        &self,
        value: &Value,
        old: Option<&Value>,
        supplied: &[Value],
    ) -> Result<Value, TranslateError> {
        let supplied: Vec<_> = supplied.iter().map(|value| Some(value.to_vec())).collect();
        let env = Env { settings: &self.settings, supplied: &supplied };
        if self.how == How::Over {
            let base = overlay::cut(old.cloned(), &self.lens.fields).expect("an old value is an object");
            return overlay::put(&self.lens.op, value, base, &env, &Limits::DOCUMENT);
        }
        let mut out = Vec::new();
        document(&self.lens.op, &value.to_vec(), &env, &Limits::DOCUMENT, &mut out)?;
        Ok(Value::parse(&out, &Limits::DOCUMENT).expect("what is written is JSON"))
    }

    /// The text of the value on the other side, by the slow reference and by a stream that is cut before each of these bytes.
    pub fn texts(
        &self,
        value: &Value,
        supplied: &[Value],
        cuts: &[usize],
    ) -> [Result<Vec<u8>, TranslateError>; 2] {
        let supplied: Vec<_> = supplied.iter().map(|value| Some(value.to_vec())).collect();
        let (text, mut whole) = (value.to_vec(), Vec::new());
        let env = Env { settings: &self.settings, supplied: &supplied };
        let document = document(&self.lens.op, &text, &env, &Limits::DOCUMENT, &mut whole).map(|()| whole);
        let values = Values { settings: Arc::clone(&self.settings), supplied };
        let stream = Arc::new(Stream::compile(&self.lens.op));
        let mut stream = Transcoder::new(stream, values.into(), Check::Strict, Bounds::default());
        let (mut out, mut start) = (Vec::new(), 0);
        let mut pushed = || {
            for cut in cuts.iter().copied().chain([text.len()]).filter(|cut| *cut <= text.len()) {
                if cut > start {
                    stream.push_into(&text[start..cut], &mut out)?;
                    start = cut;
                }
            }
            Ok(())
        };
        let pushed = pushed();
        [document, pushed.and_then(|()| stream.finish(&mut out)).map(|()| out)]
    }
}
