package wire

import (
	"encoding/json"
	"errors"
)

// The operations that a program may ask of its host.
const (
	OpHistory  = "history"
	OpTools    = "tools"
	OpCall     = "call"
	OpDelegate = "delegate"
	OpFetch    = "fetch"
	OpContent  = "content"
	OpPredict  = "predict"
	OpFile     = "file"  // what is known of one
	OpLog      = "log"   // a note
	OpSleep    = "sleep" // of the runner's own making: time.Sleep

	OpFetchFile = "fetch_file" // a fetch whose body becomes a file

	OpOpen   = "open"   // replies with a stream, as OpCreate does
	OpCreate = "create" // of a file that the program makes
	OpDecode = "decode" // of a text: it is written to the stream, and then read
	OpRead   = "read"   // replies with bytes, none at the end
	OpWrite  = "write"  // brings bytes
	OpClose  = "close"
)

// MaxPiece is the most bytes of a file that travel at once: a frame with them fits the buffers that are kept, and a pipe.
const MaxPiece = 60 << 10

// StreamParams are the parameters of OpRead, OpWrite and OpClose.
type StreamParams struct {
	Stream int `json:"stream"`
	Bytes  int `json:"bytes,omitempty"` // to read, at most
}

// Fetches reports whether the operation is a request to a host.
func Fetches(op string) bool { return op == OpFetch || op == OpFetchFile }

// OnStream reports whether the operation is one on an open file.
func OnStream(op string) bool { return op == OpRead || op == OpWrite || op == OpClose }

// Repeatable reports whether a runner may keep the answer: it stays the same as long as the host says so.
func Repeatable(op string) bool { return op == OpHistory || op == OpTools || op == OpContent }

// A Question is what a program asks of its host.
type Question struct {
	Nonce  uint64 // of the run
	ID     uint64 // counts from 1 in each run
	Op     string
	Params json.RawMessage
	Have   uint64 // id of the same question whose answer the runner still has; 0 for none
	Data   []byte // of OpWrite; it shares memory with the frame
}

// Key is the same for the same question.
func (q *Question) Key() string { return q.Op + "\x00" + string(q.Params) }

// Put builds the frame.
func (q *Question) Put(f *Builder) {
	f.Begin(KindAsk)
	f.PutFixed(q.Nonce)
	f.PutUint(q.ID)
	f.PutString(q.Op)
	f.PutBytes(q.Params)
	f.PutUint(q.Have)
	f.PutBytes(q.Data)
}

// ParseQuestion takes a question of the run with this nonce apart. Its parameters are compact JSON of at most depth levels.
func ParseQuestion(payload []byte, nonce uint64, depth int) (Question, error) {
	p := Parse(payload)
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

// What a reply to a question holds.
const (
	ReplyBody byte = iota
	ReplyRefused
	ReplySame // nothing: the answer is the one that the runner said it has
)

// A Reply answers a question.
type Reply struct {
	Nonce, ID     uint64 // of the question
	Holds         byte   // ReplyBody, ReplyRefused or ReplySame
	Body          []byte // of ReplyBody
	Type, Message string // of ReplyRefused
}

// Put builds the frame.
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

// ParseReply takes the reply to a question apart. Body shares memory with the payload.
func ParseReply(payload []byte, nonce, id uint64) (Reply, error) {
	p := Parse(payload)
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
