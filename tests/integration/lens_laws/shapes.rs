//! The shapes of a pack, in both directions, each built as a route would build it.

use crate::support::values::{Fill, Generator};
use proptest::prelude::*;
use std::sync::Arc;
use switchback_compiler::contract::{TypeIn, TypeKind};
use switchback_compiler::diagnostic::{self, Colour};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::mapping::shapes::{BuiltShape, Shapes};
use switchback_engine::translate::stream::{Bounds, Program as Stream, Transcoder, Values};
use switchback_engine::translate::{Env, Settings, TranslateError, document, overlay};
use switchback_json::{Limits, Value};
use switchback_plan::{Loss, Pack, SettingKind, SideId};

/// A pack that was read and compiled.
pub struct Loaded<'s> {
    source: &'s PackSource,
    pack: Arc<Pack>,
}

/// A named shape.
pub struct Shape<'a> {
    pub name: String,
    pub sides: [&'a str; 2],
    pub types: [TypeIn<'a>; 2],
    /// By the side that is built; none if a possible value has no place on the other side.
    pub ways: [Option<Way>; 2],
    /// The same, laid over an old value.
    pub over: [Option<Way>; 2],
    /// By side, members that show a place of the other side a second time.
    pub copies: [Vec<String>; 2],
}

/// A shape in one direction.
pub struct Way {
    pub lens: BuiltShape,
    pub how: How,
    settings: Arc<Settings>,
    supplies: Vec<BoxedStrategy<Value>>,
}

/// The requirements of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The value that is read.
    Alone,
    /// In addition, the fields that a route supplies.
    Supplied,
    /// An old value of the side that is built.
    Over,
}

/// Number of shapes in the compiled pack.
pub fn compiled(source: &PackSource) -> usize {
    Loaded::of(source).pack.shapes.len()
}

impl Loaded<'_> {
    pub fn of(source: &PackSource) -> Loaded<'_> {
        let compiled = compile(source);
        let text = diagnostic::to_text(&compiled.sources, &compiled.findings, Colour::Never);
        let pack = compiled.pack.unwrap_or_else(|| panic!("the pack does not compile:\n{text}"));
        Loaded { source, pack }
    }

    /// Calls `each` with every shape that the compiled pack has.
    pub fn shapes(&self, mut each: impl FnMut(&Shape<'_>)) {
        let ran = Shapes::with_pack(self.source, |shapes| {
            for compiled in &self.pack.shapes {
                each(&self.shape(shapes, compiled));
            }
        });
        ran.expect("the pack compiled before");
    }

    fn shape<'a>(&'a self, shapes: &'a Shapes<'_>, compiled: &switchback_plan::Shape) -> Shape<'a> {
        let name = compiled.name.as_str();
        let ways = [SideId::OLD, SideId::NEW].map(|to| {
            let way = self.way(shapes, name, to);
            if let Some(plan) = &compiled.to[usize::from(to.0)] {
                let way = way.as_ref().expect("the compiler built it alone");
                let places = |losses: &[Loss]| {
                    losses.iter().map(|l| (l.place.clone(), l.instead.clone())).collect::<Vec<_>>()
                };
                assert_eq!(places(&plan.losses), places(&way.lens.losses), "{name}");
            }
            way
        });
        let over = [SideId::OLD, SideId::NEW].map(|to| {
            let lens = shapes.build(name, to, &[], true);
            lens.map(|lens| Way { lens, how: How::Over, settings: self.settings(), supplies: Vec::new() })
        });
        let types = shapes.types(name).expect("a compiled shape has types");
        let sides = [0, 1].map(|side: usize| self.pack.sides[side].name.as_str());
        let copies = [SideId::OLD, SideId::NEW]
            .map(|side| shapes.copies(name, side).into_iter().map(str::to_owned).collect());
        Shape { name: name.to_owned(), sides, types, ways, over, copies }
    }

    /// The first of the ways that builds.
    fn way(&self, shapes: &Shapes<'_>, name: &str, to: SideId) -> Option<Way> {
        let ty = shapes.types(name).expect("a compiled shape has types")[usize::from(to.0)];
        // Required fields that no line gives a value are left to routes.
        let given = shapes.members(name, to);
        let left = fields(ty).iter().filter(|field| field.required && !given.contains(&field.name.as_str()));
        let left: Vec<&str> = left.map(|field| field.name.as_str()).collect();
        let tries = [
            (How::Alone, [].as_slice(), false),
            (How::Supplied, &left, false),
            (How::Over, [].as_slice(), true),
        ];
        for (how, supplied, is_over) in tries {
            let Some(lens) = shapes.build(name, to, supplied, is_over) else { continue };
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

/// Returns the declared members of a type; of several objects, none that all of them have.
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

    /// The text of the value on the other side, by the slow reference and by a stream that is cut
    /// before each of these bytes.
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
        let mut stream = Transcoder::new(stream, values.into(), Bounds::default());
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
