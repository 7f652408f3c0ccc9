//! Kernels as Rust closures: safe, over views instead of pointers.

use crate::element::Element;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use vmfb_hal::{Binding, Dispatch, Executable, Export};
use vmfb_memory::Span;
use vmfb_vm::{Error, Meter, Result};

/// A kernel: called once for each workgroup, with the constants and the bindings of the dispatch.
pub type Closure = dyn Fn(&Workgroup<'_>, &[u32], &[BindingView<'_>]) -> Result<()> + Send + Sync;

/// Which workgroup a kernel is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workgroup<'a> {
    /// Position in the grid: x, y, z.
    pub id: [u32; 3],
    /// Size of the grid: x, y, z.
    pub count: [u32; 3],
    /// Constants of the executable.
    pub executable_constants: &'a [u32],
}

/// The bytes of a binding. Two bindings may be the same bytes, and other threads may use them; so there are no slices.
#[derive(Clone, Copy, Debug)]
pub struct BindingView<'a> {
    span: &'a Span,
    offset: usize,
    length: usize,
}

impl<'a> BindingView<'a> {
    fn new(binding: &Binding<'a>) -> Result<Self> {
        binding.span.check(binding.offset, binding.length)?;
        Ok(Self { span: binding.span, offset: binding.offset, length: binding.length })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the bytes may be written; constants of a module may not.
    pub fn is_writable(&self) -> bool {
        self.span.is_writable()
    }

    /// Number of whole elements.
    pub fn elements<T: Element>(&self) -> usize {
        self.length / size_of::<T>()
    }

    /// Reads an element; OUT_OF_RANGE past the end.
    #[inline]
    pub fn get<T: Element>(&self, index: usize) -> Result<T> {
        let offset = self.element::<T>(index)?;
        T::load(self.span, offset).ok_or_else(|| self.no_element(index, size_of::<T>()))
    }

    /// Writes an element; OUT_OF_RANGE past the end, PERMISSION_DENIED in read-only bytes.
    #[inline]
    pub fn set<T: Element>(&self, index: usize, value: T) -> Result<()> {
        value.store(self.span, self.element::<T>(index)?)
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        Ok(self.span.read(self.range(offset, target.len())?, target)?)
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        Ok(self.span.write(self.range(offset, source.len())?, source)?)
    }

    /// Copies bytes from another binding, or from this one: as if the source were read first.
    pub fn copy_from(&self, offset: usize, source: &BindingView<'_>, source_offset: usize, length: usize) -> Result<()> {
        let (offset, source_offset) = (self.range(offset, length)?, source.range(source_offset, length)?);
        Ok(self.span.copy_from(offset, source.span, source_offset, length)?)
    }

    /// Fills bytes with a repeated pattern of 1, 2, 4 or 8 bytes.
    pub fn fill(&self, offset: usize, length: usize, pattern: &[u8]) -> Result<()> {
        Ok(self.span.fill(self.range(offset, length)?, length, pattern)?)
    }

    /// Offset of an element in the span.
    #[inline]
    fn element<T: Element>(&self, index: usize) -> Result<usize> {
        if index < self.elements::<T>() { Ok(self.offset + index * size_of::<T>()) } else { Err(self.no_element(index, size_of::<T>())) }
    }

    /// Offset of a range in the span.
    fn range(&self, offset: usize, length: usize) -> Result<usize> {
        if length <= self.length && offset <= self.length - length {
            return Ok(self.offset + offset);
        }
        Err(Error::out_of_range(format!("{length} bytes at offset {offset} do not lie in a binding of {} bytes", self.length)))
    }

    #[cold]
    fn no_element(&self, index: usize, size: usize) -> Error {
        Error::out_of_range(format!("element {index} of {size} bytes does not lie in a binding of {} bytes", self.length))
    }
}

/// A library of closures.
#[derive(Clone)]
pub struct ClosureLibrary(Arc<Inner>);

struct Inner {
    name: String,
    constant_count: usize,
    exports: Vec<ClosureExport>,
}

struct ClosureExport {
    name: String,
    constant_count: Option<usize>,
    binding_count: Option<usize>,
    closure: Box<Closure>,
}

/// Makes a [`ClosureLibrary`].
pub struct ClosureLibraryBuilder(Inner);

impl ClosureLibrary {
    /// A library without exports yet.
    pub fn builder(name: impl Into<String>) -> ClosureLibraryBuilder {
        ClosureLibraryBuilder(Inner { name: name.into(), constant_count: 0, exports: Vec::new() })
    }

    /// Name of the library, which is the data of a `static` executable.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// An executable of this library.
    pub(crate) fn load(&self, constants: &[u32]) -> Result<Arc<dyn Executable>> {
        if constants.len() != self.0.constant_count {
            return Err(Error::precondition(format!(
                "the library {} wants {} executable constants, {} were given",
                self.0.name,
                self.0.constant_count,
                constants.len()
            )));
        }
        Ok(Arc::new(ClosureExecutable { library: self.clone(), constants: constants.to_vec() }))
    }
}

impl ClosureLibraryBuilder {
    /// Adds a kernel that looks at the numbers of constants and bindings itself. Kernels are numbered in this order.
    #[must_use]
    pub fn export<F>(self, name: impl Into<String>, closure: F) -> Self
    where
        F: Fn(&Workgroup<'_>, &[u32], &[BindingView<'_>]) -> Result<()> + Send + Sync + 'static,
    {
        self.add(name.into(), None, None, Box::new(closure))
    }

    /// Adds a kernel that is only called with these numbers of constants and bindings.
    #[must_use]
    pub fn export_counted<F>(self, name: impl Into<String>, constant_count: usize, binding_count: usize, closure: F) -> Self
    where
        F: Fn(&Workgroup<'_>, &[u32], &[BindingView<'_>]) -> Result<()> + Send + Sync + 'static,
    {
        self.add(name.into(), Some(constant_count), Some(binding_count), Box::new(closure))
    }

    /// Sets the number of executable constants that the library wants; none if this is not called.
    #[must_use]
    pub fn executable_constants(mut self, count: usize) -> Self {
        self.0.constant_count = count;
        self
    }

    /// The library.
    pub fn build(self) -> ClosureLibrary {
        ClosureLibrary(Arc::new(self.0))
    }

    fn add(mut self, name: String, constant_count: Option<usize>, binding_count: Option<usize>, closure: Box<Closure>) -> Self {
        self.0.exports.push(ClosureExport { name, constant_count, binding_count, closure });
        self
    }
}

impl fmt::Debug for ClosureLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exports: Vec<&str> = self.0.exports.iter().map(|export| export.name.as_str()).collect();
        f.debug_struct("ClosureLibrary").field("name", &self.0.name).field("exports", &exports).finish_non_exhaustive()
    }
}

/// A loaded library.
struct ClosureExecutable {
    library: ClosureLibrary,
    constants: Vec<u32>,
}

impl Executable for ClosureExecutable {
    fn export_count(&self) -> usize {
        self.library.0.exports.len()
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        self.library.0.exports.iter().position(|export| export.name == name)
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        let export = self.library.0.exports.get(ordinal)?;
        Some(Export {
            name: Some(&export.name),
            constant_count: export.constant_count,
            binding_count: export.binding_count,
            local_memory: 0,
        })
    }

    fn checks_writes(&self) -> bool {
        true
    }

    fn dispatch(&self, meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()> {
        let inner = &self.library.0;
        let Some(export) = inner.exports.get(dispatch.export) else {
            return Err(Error::out_of_range(format!(
                "export {} does not exist; {} has {} exports",
                dispatch.export,
                inner.name,
                inner.exports.len()
            )));
        };
        export.check(&inner.name, dispatch)?;
        meter.charge_product(&dispatch.workgroup_count.map(u64::from))?;
        let bindings = dispatch.bindings.iter().map(BindingView::new).collect::<Result<SmallVec<[_; 8]>>>()?;
        let count @ [count_x, count_y, count_z] = dispatch.workgroup_count;
        for z in 0..count_z {
            for y in 0..count_y {
                for x in 0..count_x {
                    meter.poll()?;
                    let workgroup = Workgroup { id: [x, y, z], count, executable_constants: &self.constants };
                    (export.closure)(&workgroup, dispatch.constants, &bindings)
                        .map_err(|error| error.context(format!("workgroup ({x}, {y}, {z}) of {} of {}", export.name, inner.name)))?;
                }
            }
        }
        Ok(())
    }
}

impl ClosureExport {
    fn check(&self, library: &str, dispatch: &Dispatch<'_>) -> Result<()> {
        let counts =
            [("constants", self.constant_count, dispatch.constants.len()), ("bindings", self.binding_count, dispatch.bindings.len())];
        for (what, expected, given) in counts {
            if let Some(expected) = expected
                && expected != given
            {
                return Err(Error::invalid(format!("{} of {library} takes {expected} {what}, {given} were given", self.name)));
            }
        }
        Ok(())
    }
}
