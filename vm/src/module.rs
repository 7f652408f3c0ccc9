//! Modules: verified, translated function by function when first called, shared by threads.

use crate::body::Body;
use crate::translate::translate;
use crate::types::{ElementKind, RefType};
use crate::{Buffer, Engine, Error, Origin, Result, ResultExt};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use vmfb_bytecode::archive::Archive;
use vmfb_bytecode::calling_convention::CallingConvention;
use vmfb_bytecode::definition::{Attribute, BytecodeVersion, ModuleDef};
use vmfb_bytecode::types::TypeDef;
use vmfb_bytecode::verify::{VerifiedModule, verify};
use vmfb_memory::Span;

/// A verified module. Clones are the same module; any number of stores on any threads may run it.
///
/// Everything but constants is copied and verified when the module is made; later changes of the file cannot hurt.
#[derive(Clone)]
pub struct Module(Arc<ModuleInner>);

pub(crate) struct ModuleInner {
    pub(crate) engine: Engine,
    pub(crate) verified: VerifiedModule,
    pub(crate) ref_types: Box<[RefType]>,
    pub(crate) element_kinds: Box<[ElementKind]>,
    pub(crate) rodata: Box<[Buffer]>,
    bodies: Box<[OnceLock<Body>]>,
}

/// An exported function.
#[derive(Clone, Copy, Debug)]
pub struct ExportInfo<'a> {
    /// Name.
    pub name: &'a str,
    /// Ordinal of the function that is exported.
    pub function: u32,
    /// Calling convention.
    pub convention: &'a CallingConvention,
    /// Reflection.
    pub attributes: &'a [Attribute],
}

impl<'a> ExportInfo<'a> {
    /// The value of a reflection attribute.
    pub fn attribute(&self, key: &str) -> Option<&'a str> {
        self.attributes.iter().find(|attribute| attribute.key == key).map(|attribute| attribute.value.as_str())
    }

    /// The declaration as the program had it, for example `sync func @mul(%input0: tensor<4xf32>) -> (%output0: tensor<4xf32>)`.
    pub fn declaration(&self) -> Option<&'a str> {
        self.attribute("iree.abi.declaration")
    }
}

impl Module {
    /// Loads a module from bytes in memory: `Vec<u8>`, `&'static [u8]` or `Arc<[u8]>`. Constants are used in place if the bytes
    /// start at a multiple of 64; otherwise the bytes are copied once.
    pub fn new(engine: &Engine, bytes: impl Into<ModuleBytes>) -> Result<Self> {
        Self::from_span(engine, bytes.into().0)
    }

    /// Reads a file and loads the module in it.
    pub fn from_file(engine: &Engine, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut file = open(path)?;
        let length = file.metadata().map_err(|error| file_error(path, &error))?.len();
        let length = usize::try_from(length).map_err(|_| Error::exhausted(format!("{} is too large", path.display())))?;
        let span = Span::read_file(&mut file, length).map_err(|error| file_error(path, &error))?;
        Self::from_span(engine, span).context(|| format!("loading {}", path.display()))
    }

    /// Maps a file and loads the module in it. Constants stay in the file until they are used, so that large models load in
    /// milliseconds. **If another process truncates the file while the module or one of its constants is in use, this process
    /// ends with SIGBUS**; use [`Module::from_file`] for files that others may write.
    pub fn from_mapped(engine: &Engine, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open(path)?;
        if file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            return Err(Error::invalid("the file is empty").context(format!("loading {}", path.display())));
        }
        let span = Span::map_file(&file).map_err(|error| file_error(path, &error))?;
        Self::from_span(engine, span).context(|| format!("loading {}", path.display()))
    }

    /// Loads a module from a span. A span whose address is not a multiple of 64 is copied once.
    pub fn from_span(engine: &Engine, span: Span) -> Result<Self> {
        let _entered = tracing::debug_span!("load", bytes = span.len()).entered();
        let archive = Archive::open(span)?;
        let definition = archive.definition()?;
        let name = definition.name.clone();
        let inner = ModuleInner::new(engine, archive.bytes(), definition);
        inner.map(|inner| Self(Arc::new(inner))).context(|| format!("loading module {name:?}"))
    }

    /// Module name, for example `module`.
    pub fn name(&self) -> &str {
        &self.definition().name
    }

    /// The definition: everything that the file states.
    pub fn definition(&self) -> &ModuleDef {
        self.0.verified.definition()
    }

    /// The verified bytecode.
    pub fn verified(&self) -> &VerifiedModule {
        &self.0.verified
    }

    /// The engine that the module was made for.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The exported functions.
    pub fn exports(&self) -> impl Iterator<Item = ExportInfo<'_>> {
        let functions = self.0.verified.functions();
        self.definition().exports.iter().filter_map(|export| {
            let convention = &functions.get(export.function as usize)?.convention;
            let signature = self.definition().functions.get(export.function as usize)?.signature.as_ref();
            let attributes = signature.map_or(&[][..], |signature| signature.attributes.as_slice());
            Some(ExportInfo { name: &export.name, function: export.function, convention, attributes })
        })
    }

    /// The exported function with this name.
    pub fn export(&self, name: &str) -> Option<ExportInfo<'_>> {
        self.exports().find(|export| export.name == name)
    }

    /// The constants, one buffer per segment.
    pub fn constants(&self) -> &[Buffer] {
        &self.0.rodata
    }

    pub(crate) fn inner(&self) -> &Arc<ModuleInner> {
        &self.0
    }
}

impl ModuleInner {
    fn new(engine: &Engine, bytes: &Span, definition: ModuleDef) -> Result<Self> {
        let mut ref_types = Vec::new();
        let mut element_kinds = Vec::new();
        for name in &definition.types {
            let (ref_type, element_kind) = kinds_of(&TypeDef::parse(name)?);
            ref_types.push(ref_type);
            element_kinds.push(element_kind);
        }
        let rodata = rodata_buffers(bytes, &definition)?;
        let verified = verify(definition)?;
        let bodies = verified.functions().iter().map(|_| OnceLock::new()).collect();
        Ok(Self { engine: engine.clone(), verified, ref_types: ref_types.into(), element_kinds: element_kinds.into(), rodata, bodies })
    }

    /// A module that has nothing but translated functions.
    pub(crate) fn of_bodies(engine: &Engine, bodies: Vec<Body>, rodata: Buffer) -> Result<Self> {
        let definition = vmfb_bytecode::assemble::empty_module("self-test", BytecodeVersion::V17);
        let verified = verify(definition)?;
        let bodies = bodies.into_iter().map(OnceLock::from).collect();
        Ok(Self {
            engine: engine.clone(),
            verified,
            ref_types: [RefType::Buffer].into(),
            element_kinds: [ElementKind::Variant].into(),
            rodata: [rodata].into(),
            bodies,
        })
    }

    /// The translated function; translated now if this is its first use. The ordinal comes from verified bytecode or an export.
    #[inline]
    pub(crate) fn body(&self, function: u32) -> Result<&Body> {
        match self.translated(function) {
            Some(body) => Ok(body),
            None => self.translate(function),
        }
    }

    /// The translated function, if it was used before.
    #[inline]
    pub(crate) fn translated(&self, function: u32) -> Option<&Body> {
        self.bodies.get(function as usize)?.get()
    }

    #[cold]
    fn translate(&self, function: u32) -> Result<&Body> {
        let slot = self.bodies.get(function as usize);
        let slot = slot.ok_or_else(|| Error::internal(format!("the module has no function {function}")))?;
        let body = translate(&self.verified, function, self.engine.config())?;
        Ok(slot.get_or_init(|| body))
    }
}

/// Bytes that a module can be loaded from.
pub struct ModuleBytes(Span);

impl From<Vec<u8>> for ModuleBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Span::from_vector(bytes))
    }
}

impl From<&'static [u8]> for ModuleBytes {
    fn from(bytes: &'static [u8]) -> Self {
        Self(Span::from_static(bytes))
    }
}

impl<const N: usize> From<&'static [u8; N]> for ModuleBytes {
    fn from(bytes: &'static [u8; N]) -> Self {
        Self(Span::from_static(bytes))
    }
}

impl From<Arc<[u8]>> for ModuleBytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Span::from_shared(bytes))
    }
}

impl From<Span> for ModuleBytes {
    fn from(span: Span) -> Self {
        Self(span)
    }
}

fn kinds_of(definition: &TypeDef) -> (RefType, ElementKind) {
    let reference = match definition {
        TypeDef::Buffer => RefType::Buffer,
        TypeDef::List(_) => RefType::List,
        TypeDef::Ref(name) => RefType::Named(Arc::from(&**name)),
        _ => RefType::Never,
    };
    let element = match definition {
        TypeDef::I8 => ElementKind::I8,
        TypeDef::I16 => ElementKind::I16,
        TypeDef::I32 => ElementKind::I32,
        TypeDef::I64 => ElementKind::I64,
        TypeDef::F32 => ElementKind::F32,
        TypeDef::F64 => ElementKind::F64,
        TypeDef::Variant => ElementKind::Variant,
        TypeDef::Buffer | TypeDef::List(_) | TypeDef::Ref(_) => ElementKind::Ref(reference.clone()),
    };
    (reference, element)
}

/// One buffer per constant. Kernels need tensor constants at multiples of 64 in memory, where compilers put them in the file. If
/// the file's bytes themselves are not aligned, the part of them that constants lie in is copied, once, however many constants
/// there are and however they overlap.
fn rodata_buffers(bytes: &Span, definition: &ModuleDef) -> Result<Box<[Buffer]>> {
    const ALIGNMENT: usize = vmfb_memory::BASE_ALIGNMENT;
    let is_aligned = |start: usize| bytes.address().addr().wrapping_add(start).is_multiple_of(ALIGNMENT);
    let misplaced = || definition.rodata.iter().filter(|segment| !is_aligned(0) && !is_aligned(segment.range.start));
    // Where the copy starts and ends in the file; its start is as aligned as constants are there.
    let start = misplaced().map(|segment| segment.range.start - segment.range.start % ALIGNMENT).min();
    let end = misplaced().map(|segment| segment.range.end).max();
    let copy = match start.zip(end) {
        Some((start, end)) => Some((start, bytes.slice(start, end.saturating_sub(start))?.aligned_copy()?)),
        None => None,
    };
    let buffers = definition.rodata.iter().map(|segment| {
        let (start, length) = (segment.range.start, segment.range.len());
        let span = match &copy {
            Some((offset, copy)) if !is_aligned(start) => copy.slice(start - offset, length)?,
            _ => bytes.slice(start, length)?.read_only(),
        };
        Ok(Buffer::new(span, Origin::Module))
    });
    buffers.collect()
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| file_error(path, &error))
}

fn file_error(path: &Path, error: &std::io::Error) -> Error {
    let text = format!("cannot read {}: {error}", path.display());
    if error.kind() == std::io::ErrorKind::NotFound { Error::not_found(text) } else { Error::new(crate::Status::Unknown, text) }
}
