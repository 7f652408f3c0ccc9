//! What a tool says when it cannot do what was asked: a status, what was found and wanted, where, and the way out.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use std::fmt;
use std::ops::Range;
use std::process::ExitCode;
use vmfb_vm::Status;

/// Result of the tools.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a tool stops. Control characters from files and arguments are escaped when it is shown.
#[derive(Debug)]
pub struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    cause: Cause,
    message: String,
    causes: Option<Box<Link>>,
    snippet: Option<Snippet>,
    help: Option<String>,
}

#[derive(Debug)]
enum Cause {
    Usage,
    Status(Status),
    /// Nobody reads the output any more, which nobody needs to be told.
    BrokenPipe,
}

/// A line of context; the next is what was being done around it.
#[derive(Debug)]
struct Link {
    text: String,
    next: Option<Box<Link>>,
}

#[derive(Debug)]
struct Snippet {
    text: String,
    span: Range<usize>,
    label: String,
}

/// Whether a report is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// With ANSI colours.
    Ansi,
    /// Plain text.
    Plain,
}

impl Failure {
    /// A failure with a status.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self::of(Cause::Status(status), message.into())
    }

    /// INVALID_ARGUMENT.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::InvalidArgument, message)
    }

    /// The command line itself is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::of(Cause::Usage, message.into())
    }

    /// The standard output cannot be written.
    pub(crate) fn output(error: &std::io::Error) -> Self {
        if let Some(limit) = error.get_ref().and_then(|inner| inner.downcast_ref::<vmfb_vm::Error>()) {
            return Self::new(limit.status(), limit.message()).context("printing the results");
        }
        let message = format!("cannot write to the standard output: {error}");
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::of(Cause::BrokenPipe, message),
            _ => Self::new(io_status(error), message),
        }
    }

    /// Whether there is nobody to be told.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.0.cause, Cause::BrokenPipe)
    }

    fn of(cause: Cause, message: String) -> Self {
        Self(Box::new(Inner { cause, message: printable(&message), causes: None, snippet: None, help: None }))
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        // Help may have several lines.
        self.0.help = Some(help.into().split('\n').map(printable).collect::<Vec<_>>().join("\n"));
        self
    }

    /// Adds what to do about it, where something is known.
    #[must_use]
    pub fn maybe_help(self, help: Option<String>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// Whether it says what to do.
    pub fn has_help(&self) -> bool {
        self.0.help.is_some()
    }

    /// Points at a byte range of a text.
    #[must_use]
    pub fn at(mut self, text: &str, span: Range<usize>, label: impl Into<String>) -> Self {
        self.0.snippet = Some(excerpt(text, span, printable(&label.into())));
        self
    }

    /// Adds what was being done, outside of what is there.
    #[must_use]
    pub fn context(mut self, text: impl Into<String>) -> Self {
        let mut place = &mut self.0.causes;
        while let Some(link) = place {
            place = &mut link.next;
        }
        *place = Some(Box::new(Link { text: printable(&text.into()), next: None }));
        self
    }

    /// The status; `None` for a wrong command line.
    pub fn status(&self) -> Option<Status> {
        match self.0.cause {
            Cause::Status(status) => Some(status),
            Cause::Usage | Cause::BrokenPipe => None,
        }
    }

    /// What happened, without the status.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// 2 for a wrong command line, else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self.0.cause {
            Cause::Usage => ExitCode::from(2),
            Cause::Status(_) | Cause::BrokenPipe => ExitCode::from(1),
        }
    }

    /// The report for people. The first line holds status and message.
    pub fn render(&self, colour: Colour) -> String {
        let theme = match colour {
            Colour::Ansi => GraphicalTheme::unicode(),
            Colour::Plain => GraphicalTheme::unicode_nocolor(),
        };
        let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false).without_primary_span_start();
        let mut text = String::new();
        match handler.render_report(&mut text, self) {
            Ok(()) => text,
            Err(fmt::Error) => format!("{self}\n"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cause {
            Cause::Status(status) => write!(f, "{status}: {}", self.0.message),
            Cause::Usage | Cause::BrokenPipe => f.write_str(&self.0.message),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.causes.as_deref().map(|link| link as _)
    }
}

impl Diagnostic for Failure {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.snippet.as_ref().map(|snippet| &snippet.text as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let snippet = self.0.snippet.as_ref()?;
        let label = Some(snippet.label.clone()).filter(|label| !label.is_empty());
        Some(Box::new(std::iter::once(LabeledSpan::new(label, snippet.span.start, snippet.span.len()))))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Link {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.next.as_deref().map(|link| link as _)
    }
}

impl From<vmfb_vm::Error> for Failure {
    fn from(error: vmfb_vm::Error) -> Self {
        let mut failure = Self::new(error.status(), error.message());
        for text in error.context_chain() {
            failure = failure.context(text);
        }
        for frame in error.frames() {
            failure = failure.context(format!("at {frame}"));
        }
        failure
    }
}

impl From<vmfb_memory::Error> for Failure {
    fn from(error: vmfb_memory::Error) -> Self {
        vmfb_vm::Error::from(error).into()
    }
}

/// The status that fits an error of the operating system.
pub(crate) fn io_status(error: &std::io::Error) -> Status {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => Status::NotFound,
        ErrorKind::PermissionDenied => Status::PermissionDenied,
        ErrorKind::AlreadyExists => Status::AlreadyExists,
        ErrorKind::OutOfMemory | ErrorKind::StorageFull => Status::ResourceExhausted,
        _ => Status::Unknown,
    }
}

/// The text with control characters escaped, so that bytes from files cannot steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        push_printable(&mut escaped, character);
    }
    escaped
}

fn push_printable(target: &mut String, character: char) {
    if character.is_control() || is_direction_mark(character) {
        target.extend(character.escape_default());
    } else {
        target.push(character);
    }
}

/// Marks that reorder the text around them.
fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Characters shown on each side of a span.
const CONTEXT: usize = 30;
/// Most characters of a span that are shown.
const SPAN_LIMIT: usize = 40;

/// The part of a text around a span, printable, with the span moved to its new place.
fn excerpt(text: &str, span: Range<usize>, label: String) -> Snippet {
    let start = character_boundary(text, span.start);
    let end = character_boundary(text, span.end).max(start);
    let (before, rest) = text.split_at(start);
    let (inside, after) = rest.split_at(end - start);
    let mut shown = String::new();
    let skipped = before.char_indices().rev().nth(CONTEXT).map_or(0, |(at, character)| at + character.len_utf8());
    if skipped > 0 {
        shown.push('…');
    }
    before.get(skipped..).unwrap_or_default().chars().for_each(|character| push_printable(&mut shown, character));
    let from = shown.len();
    inside.chars().take(SPAN_LIMIT).for_each(|character| push_printable(&mut shown, character));
    if inside.chars().nth(SPAN_LIMIT).is_some() {
        shown.push('…');
    }
    let to = shown.len();
    after.chars().take(CONTEXT).for_each(|character| push_printable(&mut shown, character));
    if after.chars().nth(CONTEXT).is_some() {
        shown.push('…');
    }
    Snippet { text: shown, span: from..to, label }
}

/// The last boundary between characters that is not behind `at`.
fn character_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_report_names_status_place_and_way_out() {
        let failure =
            Failure::invalid("3xf32 needs 3 values, got 2").at("3xf32=1 2", 6..9, "2 values").help("add one").context("reading input 0");
        let text = failure.render(Colour::Plain);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines.first(), Some(&"  × INVALID_ARGUMENT: 3xf32 needs 3 values, got 2"), "{text}");
        assert!(lines.iter().any(|line| line.contains("reading input 0")), "{text}");
        assert!(lines.iter().any(|line| line.contains("3xf32=1 2")), "{text}");
        assert!(lines.iter().any(|line| line.contains("╰── 2 values")), "{text}");
        assert!(lines.iter().any(|line| line.contains("help: add one")), "{text}");
    }

    #[test]
    fn control_characters_are_escaped() {
        let failure = Failure::invalid("bad \u{1b}[31m").at("1xf32=\u{7}1", 6..8, "here").help("no\tbell");
        let text = failure.render(Colour::Plain);
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
        assert!(text.contains("\\u{7}1"), "{text}");
    }

    #[test]
    fn long_texts_are_cut_around_the_span() {
        let text = "1 ".repeat(1_000_000) + "x" + &" 2".repeat(1_000_000);
        let shown = Failure::invalid("no").at(&text, 2_000_000..2_000_001, "here").render(Colour::Plain);
        assert!(shown.len() < 600, "{shown}");
        assert!(shown.contains("1 x 2"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_text_and_span_can_be_shown(text in ".{0,200}", start in 0usize..300, length in 0usize..300) {
            let shown = Failure::invalid(text.clone()).at(&text, start..start + length, text.clone()).help(text.clone()).render(Colour::Plain);
            prop_assert!(!shown.chars().any(|character| character.is_control() && character != '\n'));
        }
    }
}
