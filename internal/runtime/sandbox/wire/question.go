package wire

import (
	"encoding/json"
	"errors"
)

// Operations that a program may ask of its host.
const (
	OpHistory  = "history"
	OpTools    = "tools"
	OpCall     = "call"
	OpDelegate = "delegate"
	OpFetch    = "fetch"
	OpContent  = "content"
	OpPredict  = "predict"
	OpFile     = "file"  // describes a file
	OpLog      = "log"   // keeps a note
	OpSleep    = "sleep" // made by the runner for time.Sleep

	OpFetchFile = "fetch_file" // a fetch whose body becomes a file

	OpOpen   = "open"   // replies with a stream, as do OpCreate and OpDecode
	OpCreate = "create" // creates a file
	OpDecode = "decode" // decodes a text, which is written to the stream and then read from it
	OpRead   = "read"   // replies with bytes; none at the end
	OpWrite  = "write"  // carries bytes in Question.Data
	OpClose  = "close"
)

// MaxPiece is the most bytes of a file in one frame. Such a frame fits a kept buffer and a pipe.
const MaxPiece = 60 << 10

// StreamParams are the parameters of OpRead, OpWrite and OpClose.
type StreamParams struct {
	Stream int `json:"stream"`
	Bytes  int `json:"bytes,omitempty"` // most bytes to read
}

// Fetches reports whether op is a request to a network host.
func Fetches(op string) bool { return op == OpFetch || op == OpFetchFile }

// OnStream reports whether op acts on an open stream.
func OnStream(op string) bool { return op == OpRead || op == OpWrite || op == OpClose }

// Repeatable reports whether a runner may keep the answer to op. The host decides each time whether it still holds.
func Repeatable(op string) bool { return op == OpHistory || op == OpTools || op == OpContent }

// A Question is a host call of a program.
type Question struct {
	Nonce  uint64 // nonce of the run
	ID     uint64 // counts from 1 in each run
	Op     string
	Params json.RawMessage
	Have   uint64 // ID of an earlier, equal question whose answer the runner still has; 0 means none
	Data   []byte // bytes of OpWrite; shares memory with the frame
}

// Key returns a key that is equal for equal questions.
func (q *Question) Key() string { return q.Op + "\x00" + string(q.Params) }

// Put builds the frame in f.
func (q *Question) Put(f *Builder) {
	f.Begin(KindAsk)
	f.PutFixed(q.Nonce)
	f.PutUint(q.ID)
	f.PutString(q.Op)
	f.PutBytes(q.Params)
	f.PutUint(q.Have)
	f.PutBytes(q.Data)
}

// ParseQuestion parses a question of the run with this nonce. Its parameters are compact JSON of at most depth levels.
func ParseQuestion(payload []byte, nonce uint64, depth int) (Question, error) {
	p := parse(payload)
	q := Question{Nonce: p.TakeFixed(), ID: p.TakeUint(), Op: p.TakeText(16), Params: p.TakeCopy(), Have: p.TakeUint(),
		Data: p.TakeBytes()}
	if !p.End() || q.Nonce != nonce {
		return q, errors.New("a question that is none")
	}
	if len(q.Params) > MaxAskParam || CheckValue(q.Params, depth) != nil {
		return q, errors.New("a question's parameters that are no JSON")
	}
	if len(q.Data) > MaxPiece {
		return q, errors.New("more bytes of a file than fit")
	}
	return q, nil
}

// Values of Reply.Holds.
const (
	ReplyBody byte = iota
	ReplyRefused
	ReplySame // no body: the answer is the one of Question.Have
)

// A Reply answers a question.
type Reply struct {
	Nonce, ID     uint64 // those of the question
	Holds         byte   // ReplyBody, ReplyRefused or ReplySame
	Body          []byte // set for ReplyBody
	Type, Message string // set for ReplyRefused
}

// Put builds the frame in f.
func (r *Reply) Put(f *Builder) {
	f.Begin(KindReply)
	f.PutFixed(r.Nonce)
	f.PutUint(r.ID)
	f.PutByte(r.Holds)
	switch r.Holds {
	case ReplyRefused:
		f.PutString(r.Type)
		f.PutString(r.Message)
	case ReplyBody:
		f.PutBytes(r.Body)
	}
}

// ParseReply parses the reply to the question with this nonce and id. Body shares memory with the payload.
func ParseReply(payload []byte, nonce, id uint64) (Reply, error) {
	p := parse(payload)
	r := Reply{Nonce: p.TakeFixed(), ID: p.TakeUint(), Holds: p.TakeByte()}
	switch r.Holds {
	case ReplyRefused:
		r.Type, r.Message = p.TakeString(), p.TakeString()
	case ReplyBody:
		r.Body = p.TakeBytes()
	}
	if !p.End() || r.Nonce != nonce || r.ID != id {
		return r, ErrFrame
	}
	return r, nil
}
