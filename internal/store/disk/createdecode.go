package disk

import (
	"bytes"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// decodeCreation decodes an entry that creates a session and has only the usual members, in the order in which they are
// written. After a crash most entries of a journal are of this kind, and package json takes five times as long for one.
// decodeCreation returns nil for any other entry.
func decodeCreation(text []byte) *entry {
	c := cursor{rest: text}
	both := &struct {
		entry
		planned
	}{}
	e := &both.entry
	// Create is kept after decoding, so it is allocated on its own.
	e.planned, e.Create = &both.planned, &created{}
	s := &e.Create.Session
	c.take(`{"t":`)
	e.At = c.number()
	if c.has(`,"ns":`) {
		e.NS = agent.Namespace(c.text())
	}
	c.take(`,"s":`)
	e.Session = c.text()
	c.take(`,"create":{"session":{"id":`)
	if id := c.quoted(); string(id) == e.Session {
		s.ID = e.Session
	} else {
		s.ID = string(id)
	}
	c.take(`,"role":`)
	s.Role = c.text()
	c.take(`,"debug":`)
	s.Debug = c.flag()
	if c.has(`,"owner":`) {
		s.Owner = c.text()
	}
	if c.has(`,"ephemeral":`) {
		s.Ephemeral = c.flag()
	}
	c.take(`,"created_at":`)
	s.CreatedAt = c.time()
	c.take(`,"updated_at":`)
	s.UpdatedAt = c.time()
	c.take(`,"history_size":`)
	s.HistorySize = int(c.number())
	c.take(`,"revision":`)
	s.Revision = c.number()
	c.take(`}}}`)
	if c.bad || len(c.rest) > 0 {
		return nil
	}
	return e
}

// A cursor reads JSON with known members. It sets bad if the text differs from what is expected, even in a way that is
// valid JSON.
type cursor struct {
	rest []byte
	bad  bool
}

// has reports whether the text goes on with want, and skips it if so.
func (c *cursor) has(want string) bool {
	if len(c.rest) < len(want) || string(c.rest[:len(want)]) != want {
		return false
	}
	c.rest = c.rest[len(want):]
	return true
}

// take skips want, or sets bad.
func (c *cursor) take(want string) { c.bad = c.bad || !c.has(want) }

// quoted returns a string of printable ASCII without escapes.
func (c *cursor) quoted() []byte {
	c.take(`"`)
	end := bytes.IndexByte(c.rest, '"')
	if c.bad || end < 0 {
		c.bad = true
		return nil
	}
	s := c.rest[:end]
	for _, b := range s {
		if b < ' ' || b > '~' || b == '\\' {
			c.bad = true
			return nil
		}
	}
	c.rest = c.rest[end+1:]
	return s
}

func (c *cursor) text() string { return string(c.quoted()) }

// number reads a non-negative integer.
func (c *cursor) number() int64 {
	end := 0
	for end < len(c.rest) && c.rest[end] >= '0' && c.rest[end] <= '9' {
		end++
	}
	digits := c.rest[:end]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	c.bad = c.bad || err != nil || end > 1 && digits[0] == '0'
	c.rest = c.rest[end:]
	return n
}

func (c *cursor) flag() bool {
	if c.has("true") {
		return true
	}
	c.take("false")
	return false
}

func (c *cursor) time() (t time.Time) {
	if err := t.UnmarshalText(c.quoted()); err != nil {
		c.bad = true
	}
	return t
}
