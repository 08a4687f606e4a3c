//! The elements of an SVG document, and its style.

use super::palette;
use std::fmt::Write;

/// The body of a document in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Canvas(String);

/// The part of a text that stands at its position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Everything but the colors of areas. Classes that only one color scheme changes are in the last rule.
const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
.title{font-size:16px;font-weight:600}.small{font-size:11px}.strong{font-weight:600}\
.paper{fill:#fff}.ink,.title,.strong{fill:#1f2328}.dim{fill:#59636e}.panel{fill:#f0f2f5}.light{fill:#f6f8fa}.mid{fill:#e6eaef}\
.grid{stroke:#d8dee4}.axis{stroke:#8c959f}.edge{stroke:#fff;stroke-width:1}\
.top,.reserved,.limit{fill:none;stroke:#1f2328}.top{stroke-width:1}.reserved{stroke-width:1.5;stroke-dasharray:5 3}\
.limit{stroke:#b42318;stroke-width:1.5}.alarm{fill:#b42318}.dot{fill:#1f2328;stroke:#fff;stroke-width:1.5}\
.onlight{fill:#1a1a1a}.ondark{fill:#fff}";

const DARK_STYLE: &str = "\
.paper{fill:#0d1117}.ink,.title,.strong{fill:#e6edf3}.dim{fill:#9198a1}.panel{fill:#1a2029}.light{fill:#151b23}.mid{fill:#212830}\
.grid{stroke:#2a313c}.axis{stroke:#656c76}.edge{stroke:#0d1117}\
.top,.reserved{stroke:#e6edf3}.limit{stroke:#ff7b72}.alarm{fill:#ff7b72}.dot{fill:#e6edf3;stroke:#0d1117}";

impl Canvas {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A rectangle (x, y, width, height) with a text for the pointer.
    pub(crate) fn rect(
        &mut self,
        (x, y, width, height): (f64, f64, f64, f64),
        class: &str,
        hint: Option<&str>,
    ) {
        let _ = write!(
            self.0,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"",
            Short(x),
            Short(y),
            Short(width),
            Short(height)
        );
        self.close("rect", hint);
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = write!(
            self.0,
            "<text x=\"{}\" y=\"{}\" class=\"{class}\"{anchor}>{}</text>",
            Short(x),
            Short(y),
            Escaped(text)
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.0,
            "<path d=\"M{} {}L{} {}\" class=\"{class}\"/>",
            Short(from.0),
            Short(from.1),
            Short(to.0),
            Short(to.1)
        );
    }

    /// A path with a text for the pointer.
    pub(crate) fn path(&mut self, path: &Path, class: &str, hint: Option<&str>) {
        let _ = write!(self.0, "<path d=\"{}\" class=\"{class}\"", path.0);
        self.close("path", hint);
    }

    pub(crate) fn dot(&mut self, (x, y): (f64, f64)) {
        let _ = write!(
            self.0,
            "<circle cx=\"{}\" cy=\"{}\" r=\"3.5\" class=\"dot\"/>",
            Short(x),
            Short(y)
        );
    }

    /// A circle with a text for the pointer.
    pub(crate) fn circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str, hint: &str) {
        let _ = write!(
            self.0,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"",
            Short(x),
            Short(y),
            Short(radius)
        );
        self.close("circle", Some(hint));
    }

    fn close(&mut self, element: &str, hint: Option<&str>) {
        let _ = match hint {
            Some(hint) => writeln!(self.0, "><title>{}</title></{element}>", Escaped(hint)),
            None => writeln!(self.0, "/>"),
        };
    }

    /// The document.
    pub(crate) fn finish(self, width: f64, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (Short(width), Short(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
             <title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n\
             <style>{STYLE}{}@media(prefers-color-scheme:dark){{{DARK_STYLE}{}}}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{}</svg>\n",
            Escaped(title),
            Escaped(description),
            palette::STYLE,
            palette::DARK_STYLE,
            self.0
        )
    }
}

/// The data of a path of horizontal and vertical lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn start((x, y): (f64, f64)) -> Self {
        Self(format!("M{} {}", Short(x), Short(y)))
    }

    pub(crate) fn horizontal(&mut self, x: f64) {
        let _ = write!(self.0, "H{}", Short(x));
    }

    pub(crate) fn vertical(&mut self, y: f64) {
        let _ = write!(self.0, "V{}", Short(y));
    }

    pub(crate) fn close(&mut self) {
        self.0.push('Z');
    }
}

/// About the width of a character in a system's sans serif font, by the size of the font; rather more than less.
const CHARACTER: f64 = 0.61;
/// The fewest characters of a longer name that say something.
const FEWEST: usize = 7;

/// About the width of a text, in pixels.
pub(crate) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER
}

/// The text, or as much of its end as `width` has room for: the end of a path tells more than its beginning. Empty if
/// hardly anything has room.
pub(crate) fn fitted(text: &str, width: f64, size: f64) -> String {
    let room = (width / (size * CHARACTER)).max(0.0) as usize;
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    if room < FEWEST {
        return String::new();
    }
    let end: String = text.chars().skip(count + 1 - room).collect();
    format!("…{end}")
}

/// A coordinate, to a tenth of a pixel.
#[derive(Clone, Copy, Debug)]
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        match tenths % 10 {
            0 => write!(f, "{}", tenths / 10),
            _ => write!(f, "{}", tenths as f64 / 10.0),
        }
    }
}

/// A text as content of an element. What XML does not allow is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_element() {
        let mut canvas = Canvas::new();
        canvas.text((0.0, 0.0), Anchor::Start, "ink", "</text><script>\"a\" & b\u{7}");
        canvas.rect((0.0, 0.0, 1.04, 1.06), "paper", Some("<b>"));
        assert_eq!(
            canvas.0,
            "<text x=\"0\" y=\"0\" class=\"ink\">&lt;/text&gt;&lt;script&gt;&quot;a&quot; &amp; b</text>\
             <rect x=\"0\" y=\"0\" width=\"1\" height=\"1.1\" class=\"paper\"><title>&lt;b&gt;</title></rect>\n"
        );
    }

    #[test]
    fn a_text_without_room_is_cut_at_its_beginning() {
        assert_eq!(fitted("Linear_3", 100.0, 10.0), "Linear_3");
        assert_eq!(fitted("GPT2_0 › Linear_3", 55.0, 10.0), "…Linear_3");
        assert_eq!(fitted("Linear_3", 40.0, 10.0), "");
        assert_eq!(fitted("job", 20.0, 10.0), "job");
    }
}
