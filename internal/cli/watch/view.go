package watch

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// Lines around the calls: the title and the header above, the keys below.
const frameLines = 3

// rows is how many calls fit.
func (s *screen) rows() int { return max(0, s.height-frameLines) }

// View draws the screen. Every part of it has been cleaned: all escape sequences in it are ours.
func (s *screen) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if s.width < 1 || s.height < 1 {
		return v
	}
	twigs := s.calls.lines(s.want, s.flat)
	bottom := max(0, len(twigs)-s.rows())
	if s.follow || s.top > bottom {
		s.top = bottom
	}
	lines := []string{s.title(), s.colours.Paint(text.Faint, s.fit(header(s.width)))}
	for _, t := range twigs[s.top:min(len(twigs), s.top+s.rows())] {
		lines = append(lines, s.line(t))
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, s.footer(len(twigs)))
	v.SetContent(strings.Join(lines[:min(len(lines), s.height)], "\n"))
	return v
}

func (s *screen) fit(text string) string { return ansi.Truncate(text, s.width, "…") }

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
	text := s.colours.Paint(text.Bold, "recurgentd watch") + "  " + text.Clean(s.url, 60) + "  " + text.Plural(s.ended, "call") + ", " + failed + "  " + state
	return s.fit(text)
}

// Columns of a line: the time, the call, how it ended, its program's source and how long it took. The call gets the remaining width.
const (
	timeColumns     = 8
	statusColumns   = 7
	sourceColumns   = 9
	durationColumns = 9
	fixedColumns    = timeColumns + statusColumns + sourceColumns + durationColumns + 4
)

func callColumns(width int) int { return max(10, width-fixedColumns) }

func header(width int) string {
	return columns("TIME", text.Pad("CALL", callColumns(width)), "STATUS", "SOURCE", "TOOK")
}

func columns(at, call, status, source, took string) string {
	return text.Pad(at, timeColumns) + " " + call + " " + text.Pad(status, statusColumns) + " " + text.Pad(source, sourceColumns) + " " + fmt.Sprintf("%*s", durationColumns, took)
}

func (s *screen) line(t twig) string {
	w := t.call
	shown := t.lead + w.Text
	if w.Detail != "" {
		shown += " → " + w.Detail
	}
	room := callColumns(s.width)
	shown = text.Pad(ansi.Truncate(shown, room, "…"), room)
	if !t.match {
		return s.fit(s.colours.Paint(text.Faint, columns(w.Time, shown, w.Status, w.Source, w.duration())))
	}
	line := columns(w.Time, shown, w.Status, w.Source, w.duration())
	if !s.colours {
		return s.fit(line)
	}
	status := s.colours.Status(w.Status, text.Pad(w.Status, statusColumns))
	return s.fit(s.colours.Paint(text.Faint, text.Pad(w.Time, timeColumns)) + " " + shown + " " + status + " " + text.Pad(w.Source, sourceColumns) + " " + fmt.Sprintf("%*s", durationColumns, w.duration()))
}

func (s *screen) footer(lines int) string {
	switch {
	case s.typing && s.wrong != "":
		return s.fit("filter: " + text.Clean(s.typed, s.width) + "▏ " + s.colours.Paint(text.Bad, s.wrong))
	case s.typing:
		return s.fit("filter: " + text.Clean(s.typed, s.width) + "▏")
	}
	var parts []string
	if f := s.want.String(); f != "" {
		parts = append(parts, s.colours.Paint(text.Live, text.Clean(f, 60)), "Esc all")
	}
	if !s.follow {
		parts = append(parts, fmt.Sprintf("line %d of %d, End follows", s.top+1, lines))
	}
	shape := "t list"
	if s.flat {
		shape = "t trees"
	}
	return s.fit(strings.Join(append(parts, "q end", "/ filter", shape, "↑↓ move"), "  "))
}
