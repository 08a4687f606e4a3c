//! The terminal while a run is looked at: raw mode and the other screen, given back however it ends.

use crate::browser::Browser;
use crate::hang_up::{HANG_UP, SIGNALS};
use crate::key::{Key, KeyOutcome};
use crate::view::{Palette, draw};
use crate::wait::{Arrival, Events};
use crossterm::event::Event;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui_core::backend::Backend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_crossterm::CrosstermBackend;
use signal_hook::flag;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a key is waited for before signals are looked at.
const WAIT: Duration = Duration::from_millis(100);

/// The reason for which it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A key.
    ByKey,
    /// A signal, by its number.
    BySignal(i32),
}

/// Shows the browser on a terminal, to which `out` writes, until a key or a signal ends it.
///
/// # Errors
/// If the terminal cannot be written, or its keys cannot be read. The terminal is as before.
pub fn browse(browser: &mut Browser, palette: Palette, out: impl Write) -> io::Result<Ended> {
    let signals = Signals::new()?;
    let mut screen = Screen::enter(out)?;
    let ended = Events::start(WAIT)
        .and_then(|events| turns(browser, palette, &mut screen, &signals, &events));
    let left = screen.leave();
    match ended {
        // A terminal that is gone cannot be written, which is not worth an error of its own.
        Err(_) if signals.received().is_some() => {
            Ok(signals.received().map_or(Ended::ByKey, Ended::BySignal))
        }
        Ok(ended @ Ended::BySignal(_)) => Ok(ended),
        ended => left.and(ended),
    }
}

fn turns<W: Write>(
    browser: &mut Browser,
    palette: Palette,
    screen: &mut Screen<W>,
    signals: &Signals,
    events: &Events,
) -> io::Result<Ended> {
    loop {
        paint(browser, palette, &mut screen.backend, &mut screen.shown)?;
        let event = loop {
            if let Some(signal) = signals.received() {
                return Ok(Ended::BySignal(signal));
            }
            match events.wait(WAIT)? {
                Arrival::Event(event) => break event,
                Arrival::Nothing => {}
                Arrival::HangUp => return Ok(Ended::BySignal(HANG_UP)),
            }
        };
        let key = match event {
            Event::Key(event) => Key::of(&event),
            _ => None,
        };
        if key.is_some_and(|key| browser.press(key) == KeyOutcome::Quit) {
            return Ok(Ended::ByKey);
        }
    }
}

/// Draws the browser, and writes the cells that are not as they are shown.
fn paint<B: Backend>(
    browser: &mut Browser,
    palette: Palette,
    backend: &mut B,
    shown: &mut Buffer,
) -> Result<(), B::Error> {
    let area = Rect::from((Position::ORIGIN, backend.size()?));
    if area != shown.area {
        backend.clear()?;
        *shown = Buffer::empty(area);
    }
    browser.fit(area.width, area.height);
    let mut next = Buffer::empty(area);
    draw(browser, palette, &mut next);
    backend.draw(shown.diff(&next).into_iter())?;
    *shown = next;
    backend.flush()
}

/// The signals that end it.
struct Signals {
    received: Arc<AtomicUsize>,
    ids: Vec<signal_hook::SigId>,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let mut signals = Self { received: Arc::default(), ids: Vec::new() };
        for signal in SIGNALS {
            let received = Arc::clone(&signals.received);
            signals.ids.push(flag::register_usize(signal, received, signal as usize)?);
        }
        Ok(signals)
    }

    fn received(&self) -> Option<i32> {
        match self.received.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// The other screen of a terminal in raw mode, until it is dropped: also by a panic.
struct Screen<W: Write> {
    backend: CrosstermBackend<W>,
    /// The cells as they are shown.
    shown: Buffer,
    is_left: bool,
}

impl<W: Write> Screen<W> {
    fn enter(out: W) -> io::Result<Self> {
        enable_raw_mode()?;
        let backend = CrosstermBackend::new(out);
        let mut screen = Self { backend, shown: Buffer::default(), is_left: false };
        execute!(screen.backend, EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.is_left = true;
        let left = execute!(self.backend, LeaveAlternateScreen, cursor::Show);
        let cooked = disable_raw_mode();
        left.and(cooked)
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        if !self.is_left {
            // Nothing more can be done for a terminal that is gone.
            let _ = self.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::Subject;
    use ratatui_core::backend::TestBackend;

    #[test]
    fn what_is_written_piece_by_piece_is_what_is_drawn() {
        let subject = Subject {
            name: "empty".to_owned(),
            device: "custom".to_owned(),
            verdict: "fits".to_owned(),
            timeline: xmem::predict::Timeline::default(),
        };
        let mut browser = Browser::new(subject);
        let (mut backend, mut shown) = (TestBackend::new(80, 24), Buffer::default());
        for (key, size) in [
            (None, (80, 24)),
            (Some(Key::Char('?')), (80, 24)),
            (Some(Key::Escape), (60, 20)),
            (Some(Key::Char('/')), (100, 30)),
        ] {
            if let Some(key) = key {
                browser.press(key);
            }
            backend.resize(size.0, size.1);
            paint(&mut browser, Palette::Letters, &mut backend, &mut shown).expect("written");
            let mut whole = Buffer::empty(Rect::new(0, 0, size.0, size.1));
            draw(&browser, Palette::Letters, &mut whole);
            backend.assert_buffer(&whole);
        }
    }
}
