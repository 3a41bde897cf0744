package fetch

import (
	"bytes"
	"io"
)

// Bounds of what a masker looks through at once, and of an echo that it finds wherever the body is cut.
const (
	maskWindow  = 512 << 10
	maskOverlap = 64 << 10
)

// A masker writes a body of any length without echoes of credentials. It looks through a window at a time and cuts the body only where no echo is; a
// window without such a place ends the fetch.
type masker struct {
	to   io.Writer
	mask func(text []byte) ([]byte, error) // may share memory with text
	buf  []byte                            // not written yet
}

func (m *masker) Write(p []byte) (int, error) {
	m.buf = append(m.buf, p...)
	if len(m.buf) < maskWindow {
		return len(p), nil
	}
	return len(p), m.pass()
}

// end writes what is left.
func (m *masker) end() error {
	out, err := m.mask(m.buf)
	if err == nil {
		_, err = m.to.Write(out)
	}
	m.buf = nil
	return err
}

// pass writes what no later byte can make an echo.
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

// cut writes what stands for the bytes before that place.
func (m *masker) cut(at int, out []byte) error {
	_, err := m.to.Write(out)
	m.buf = append(m.buf[:0], m.buf[at:]...)
	return err
}
