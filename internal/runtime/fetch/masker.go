package fetch

import (
	"bytes"
	"io"
)

// maskWindow is how many bytes a masker scans at once. maskOverlap bounds the length of an echo that it finds across
// cuts.
const (
	maskWindow  = 512 << 10
	maskOverlap = 64 << 10
)

// A masker writes a body of any length without echoes of credentials. It scans one window at a time and cuts the body
// only where there is no echo. If a window has no such place, the fetch fails.
type masker struct {
	to   io.Writer
	mask func(text []byte) ([]byte, error) // its result may share memory with text
	buf  []byte                            // not yet written
}

func (m *masker) Write(p []byte) (int, error) {
	m.buf = append(m.buf, p...)
	if len(m.buf) < maskWindow {
		return len(p), nil
	}
	return len(p), m.pass()
}

// end writes the rest.
func (m *masker) end() error {
	out, err := m.mask(m.buf)
	if err == nil {
		_, err = m.to.Write(out)
	}
	m.buf = nil
	return err
}

// pass writes the part that no later byte can turn into an echo.
func (m *masker) pass() error {
	whole, err := m.mask(m.buf)
	if err != nil {
		return err
	}
	if bytes.Equal(whole, m.buf) {
		return m.cut(len(m.buf)-maskOverlap, whole[:len(m.buf)-maskOverlap])
	}
	for at := len(m.buf) - maskOverlap; at > 0; at -= maskOverlap {
		before, err := m.mask(m.buf[:at])
		if err != nil {
			return err
		}
		rest, err := m.mask(m.buf[at:])
		if err != nil {
			return err
		}
		if len(before)+len(rest) == len(whole) && bytes.HasPrefix(whole, before) && bytes.HasSuffix(whole, rest) {
			return m.cut(at, before)
		}
	}
	return &Refusal{KindConnection, "the answer repeats a connection's credential over and over"}
}

// cut writes out, the masked form of the bytes before at, and removes those from the buffer.
func (m *masker) cut(at int, out []byte) error {
	_, err := m.to.Write(out)
	m.buf = append(m.buf[:0], m.buf[at:]...)
	return err
}
