package wire

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Fix is a source as a model wrote it, and what is known of it.
type Fix struct {
	Source string       `json:"source"`
	Terms  report.Terms `json:"terms"`
}

// Put builds the frame.
func (m *Fix) Put(f *Builder) error { return putJSON(f, KindFix, m) }

// ParseFix takes the daemon's frame apart.
func ParseFix(payload []byte) (m Fix, err error) {
	if json.Unmarshal(payload, &m) != nil {
		return Fix{}, ErrFrame
	}
	return m, nil
}

// A Fixed is the text that a runner made of a source, what it fixed in it, and what is wrong with it.
type Fixed struct{ report.Fixed }

// Bounds of a Fixed.
const (
	MaxFixed   = 1 << 20 // bytes of its payload
	maxFixes   = 32
	maxFixText = 400
)

// Put builds the frame.
func (m *Fixed) Put(f *Builder) error { return putJSON(f, KindFixed, m) }

// ParseFixed takes a payload of at most MaxFixed bytes apart. The text has at most most bytes, and is UTF-8 as all others are.
func ParseFixed(payload []byte, most int) (m Fixed, err error) {
	if json.Unmarshal(payload, &m) != nil || len(m.Text) > most {
		return Fixed{}, ErrFrame
	}
	m.Fixes, m.Faults = bounded(m.Fixes, most), bounded(m.Faults, most)
	return m, nil
}

func bounded(list []report.Fix, most int) []report.Fix {
	list = list[:min(len(list), maxFixes)]
	for i := range list {
		list[i].Line = max(0, min(list[i].Line, most))
		list[i].Text = BoundText([]byte(list[i].Text), maxFixText)
	}
	return list
}
