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

// maxDecoded bounds the bytes that a run may decode at once. They are held in memory, because guessing the character
// set needs all of them.
const maxDecoded = 16 << 20

// A decoding collects bytes, and then yields them decoded to UTF-8.
type decoding struct {
	x    *exchange
	in   []byte
	text io.Reader // set by the first Read
}

// decode opens a stream that decodes text.
func (x *exchange) decode() (reply, *Failure) {
	return x.files.add(stream{text: &decoding{x: x}}, ""), nil
}

// Write adds bytes. It fails after the first Read, and if the run's decodings would exceed maxDecoded.
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

// Read returns decoded text. The journal records a character set other than UTF-8, because the module of an ejected
// program does not support all of them.
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
			raw, _ := json.Marshal(decodedNote{name, mark != ""}) // a string and a bool always encode
			d.x.journal.add(wire.OpDecode, json.RawMessage("{}"), raw, nil)
		}
	}
	return d.text.Read(p)
}

// decodedNote is the journal entry of a decoded text.
type decodedNote struct {
	Charset string `json:"charset"`
	Marked  bool   `json:"marked,omitempty"` // the text has a byte order mark
}

// Close releases the memory. Later reads return io.EOF.
func (d *decoding) Close() error {
	d.x.files.decoded -= len(d.in)
	d.in, d.text = nil, bytes.NewReader(nil)
	return nil
}
