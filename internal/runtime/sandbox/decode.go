package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// maxDecoded bounds the bytes that a run has decoded at once: they are in memory, as the character set shows in all of them.
const maxDecoded = 16 << 20

// A decoding takes bytes, and then gives the text that they are.
type decoding struct {
	x    *exchange
	in   []byte
	text io.Reader // once it is read
}

// decode opens a stream that decodes text.
func (x *exchange) decode() (reply, *Failure) {
	return x.files.add(stream{text: &decoding{x: x}}, ""), nil
}

// Write adds bytes. It is an error once the text is read.
func (d *decoding) Write(p []byte) (int, error) {
	room := &d.x.files.decoded
	if d.text != nil || *room+len(p) > maxDecoded {
		return 0, &recurgent.Failure{Type: agent.ErrInvalidInput,
			Message: fmt.Sprintf("decode: text of at most %d bytes is decoded in memory; write more to a file, and read that with call.OpenText", maxDecoded)}
	}
	*room += len(p)
	d.in = append(d.in, p...)
	return len(p), nil
}

// Read gives the text. The journal notes a character set other than UTF-8: a module of ejected programs does not know all of them.
func (d *decoding) Read(p []byte) (int, error) {
	if d.text == nil {
		name, err := charsets.Guess(bytes.NewReader(d.in), "")
		if err == nil && name == "" {
			err = &recurgent.Failure{Type: agent.ErrParseFailed, Message: "decode: the bytes are no text"}
		}
		if err == nil {
			d.text, err = charsets.NewReader(bytes.NewReader(d.in), name)
		}
		if err != nil {
			return 0, err
		}
		if name != charsets.UTF8 && !d.x.journal.replaying() {
			mark, _ := charsets.Marked(d.in)
			raw, _ := json.Marshal(decodedNote{name, mark != ""}) // a text and a bool
			d.x.journal.add(wire.OpDecode, json.RawMessage("{}"), raw, nil)
		}
	}
	return d.text.Read(p)
}

// decodedNote is how a journal notes a text that was decoded.
type decodedNote struct {
	Charset string `json:"charset"`
	Marked  bool   `json:"marked,omitempty"` // by a byte order mark
}

// Close gives the memory back.
func (d *decoding) Close() error {
	d.x.files.decoded -= len(d.in)
	d.in, d.text = nil, bytes.NewReader(nil)
	return nil
}
