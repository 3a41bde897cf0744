package watch

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// frameLines is the number of lines around the calls: title and header above, keys below.
const frameLines = 3

// rows returns the number of lines for calls.
func (s *screen) rows() int { return max(0, s.height-frameLines) }

// View draws the screen. Text from elsewhere has been cleaned, so all escape sequences are the program's own.
func (s *screen) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if s.width < 1 || s.height < 1 {
		return v
	}
	twigs := s.calls.lines(s.want, s.flat)
	at := s.selected(twigs)
	if at < 0 {
		// The selected call was filtered out or is gone.
		s.follow, s.at = true, ""
	}
	bottom := max(0, len(twigs)-s.rows())
	if s.follow || s.top > bottom {
		s.top = bottom
	}
	lines := []string{s.title(), s.colours.Paint(text.Faint, s.fit(header(s.width)))}
	for i := s.top; i < min(len(twigs), s.top+s.rows()); i++ {
		lines = append(lines, s.line(twigs[i], i == at))
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, s.footer(at, len(twigs)))
	v.SetContent(strings.Join(lines[:min(len(lines), s.height)], "\n"))
	return v
}

func (s *screen) fit(text string) string { return ansi.Truncate(text, s.width, "…") }

// title returns the first line: the daemon, the counts and the state of the connection.
func (s *screen) title() string {
	state := s.colours.Paint(text.Good, "live")
	switch {
	case s.lost != "":
		state = s.colours.Paint(text.Bad, "connecting again: "+s.lost)
	case !s.started:
		state = s.colours.Paint(text.Warn, "connecting")
	}
	failed := text.Plural(s.failed, "error")
	if s.failed > 0 {
		failed = s.colours.Paint(text.Bad, failed)
	}
	line := s.colours.Paint(text.Bold, "recurgentd watch") + "  " + text.Clean(s.url, 60) + "  " + text.Plural(s.ended,
		"call") + ", " + failed + "  " + state
	if n := len(s.wrongs); n > 0 {
		line += "  " + s.colours.Paint(text.Warn, text.Plural(n, "doubted program"))
	}
	return s.fit(line)
}

// Columns of a line: time, call, status, source of the program, duration. The call gets the remaining width.
const (
	timeColumns     = 8
	statusColumns   = 7
	sourceColumns   = 9
	durationColumns = 9
	fixedColumns    = timeColumns + statusColumns + sourceColumns + durationColumns + 4
)

func callColumns(width int) int { return max(10, width-fixedColumns) }

func header(width int) string {
	return columns("TIME", " "+text.Pad("CALL", callColumns(width)), "STATUS", "SOURCE", "TOOK")
}

// columns joins the parts of a line. call begins with the selection mark or a space.
func columns(at, call, status, source, took string) string {
	return text.Pad(at, timeColumns) + call + " " + text.Pad(status, statusColumns) + " " + text.Pad(source,
		sourceColumns) + " " + fmt.Sprintf("%*s", durationColumns, took)
}

// line draws a call, with a mark if it is selected.
func (s *screen) line(t twig, selected bool) string {
	w, mark := t.call, " "
	if selected {
		mark = s.colours.Paint(text.Live, ">")
	}
	shown := t.lead + w.Text
	if words := s.remark(w); words != "" {
		shown += " → " + words
	}
	room := callColumns(s.width)
	shown = text.Pad(ansi.Truncate(shown, room, "…"), room)
	if !bool(s.colours) || !t.match {
		line := columns(w.Time, mark+shown, w.Status, w.Source, w.duration())
		if !t.match {
			line = s.colours.Paint(text.Faint, line)
		}
		return s.fit(line)
	}
	status := s.colours.Status(w.Status, text.Pad(w.Status, statusColumns))
	return s.fit(s.colours.Paint(text.Faint, text.Pad(w.Time, timeColumns)) + mark + shown + " " + status + " " +
		text.Pad(w.Source, sourceColumns) + " " + fmt.Sprintf("%*s", durationColumns, w.duration()))
}

// remark returns the text after a call: its verdict, the progress of a correction, and its error.
func (s *screen) remark(w *Call) string {
	var parts []string
	switch {
	case w.Verdict != "":
		parts = append(parts, "judged "+w.Verdict)
	case w.Doubted:
		parts = append(parts, "doubted program")
	}
	if words := s.wrongs[w.method()]; words != "" && len(parts) > 0 {
		parts = append(parts, "correction "+words)
	}
	if w.Detail != "" {
		parts = append(parts, w.Detail)
	}
	return strings.Join(parts, ", ")
}

// footer returns the last line: a prompt, the result of a verdict, or the keys.
func (s *screen) footer(at, lines int) string {
	if p := s.prompt; p != nil {
		line := p.String() + text.Clean(p.typed, s.width) + "▏"
		if p.wrong != "" {
			line += " " + s.colours.Paint(text.Bad, p.wrong)
		}
		return s.fit(line)
	}
	if s.said != "" {
		return s.fit(s.said)
	}
	var parts []string
	if f := s.want.String(); f != "" {
		parts = append(parts, s.colours.Paint(text.Live, text.Clean(f, 60)), "Esc all")
	}
	if !s.follow {
		parts = append(parts, fmt.Sprintf("line %d of %d, End follows", at+1, lines), "w wrong", "r right", "u undo")
	}
	shape := "t list"
	if s.flat {
		shape = "t trees"
	}
	return s.fit(strings.Join(append(parts, "q end", "/ filter", shape, "↑↓ select"), "  "))
}
