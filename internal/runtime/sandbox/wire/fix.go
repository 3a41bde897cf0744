package wire

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Fix asks a runner to repair a source as a model wrote it.
type Fix struct {
	Source string       `json:"source"`
	Terms  report.Terms `json:"terms"` // what is known of the program
}

// Put builds the frame in f.
func (m *Fix) Put(f *Builder) error { return putJSON(f, KindFix, m) }

// ParseFix parses the daemon's frame.
func ParseFix(payload []byte) (m Fix, err error) {
	if json.Unmarshal(payload, &m) != nil {
		return Fix{}, ErrFrame
	}
	return m, nil
}

// A Fixed is a runner's reply to a Fix: the repaired text, the repairs, and the faults that remain.
type Fixed struct{ report.Fixed }

// Bounds of a Fixed.
const (
	MaxFixed   = 1 << 20 // bytes of its payload
	maxFixes   = 32
	maxFixText = 400
)

// Put builds the frame in f.
func (m *Fixed) Put(f *Builder) error { return putJSON(f, KindFixed, m) }

// ParseFixed parses a payload of at most MaxFixed bytes. It rejects a Text longer than most bytes. All texts are valid
// UTF-8.
func ParseFixed(payload []byte, most int) (m Fixed, err error) {
	if json.Unmarshal(payload, &m) != nil || len(m.Text) > most {
		return Fixed{}, ErrFrame
	}
	m.Fixes, m.Faults = bounded(m.Fixes, most), bounded(m.Faults, most)
	return m, nil
}

// bounded cuts the list to maxFixes entries and bounds the numbers and texts in it.
func bounded(list []report.Fix, most int) []report.Fix {
	list = list[:min(len(list), maxFixes)]
	for i := range list {
		list[i].Line = max(0, min(list[i].Line, most))
		list[i].Text = BoundText([]byte(list[i].Text), maxFixText)
	}
	return list
}
