package wire

import (
	"encoding/json"
	"fmt"
)

// A ToolStep is one run of a compiler or linker.
type ToolStep struct {
	Tool   string   // absolute path of a static executable
	Args   []string // relative paths in them start at Tools.Dir
	Writes string   // path in Tools.Dir of the one file that it may write, which the sandbox makes
}

// Tools are steps to run one after another until one fails, each in a process that is confined to the directories.
type Tools struct {
	Dir    string   // the working directory
	Read   []string // other directories that they may read
	Env    []string // more of their environment, which holds the bounds of the Go runtime alone
	Memory int64    // bytes of data that each may have
	CPU    int64    // seconds of processor time that each may use
	File   int64    // bytes of the file that it writes
	Steps  []ToolStep
}

// Bounds of Tools that a tool can exceed.
const (
	BoundCPU    = "processor time"
	BoundMemory = "memory"
	BoundFile   = "room for what it writes"
)

// A ToolLimit is the error of a tool that a bound of its Tools has ended: not the machine, but what it was given to do.
type ToolLimit struct {
	Bound string // BoundCPU, BoundMemory or BoundFile
	Tool  string // its name
	Most  string // what it may have, with the unit
}

func (e *ToolLimit) Error() string {
	return fmt.Sprintf("the program is too large to %s: that needs more %s than the %s that a build may have", e.Tool,
		e.Bound, e.Most)
}

// MaxNativeText bounds the text of a program's native form, in bytes.
const MaxNativeText = 4 << 20

// MaxChecked bounds the payload of a Checked, in bytes.
const MaxChecked = MaxNativeText + MaxFacts

// PutNativeText builds the frame that brings a source, for a text to be compiled.
func PutNativeText(f *Builder, source string) {
	f.Begin(KindText)
	f.PutString(source)
}

// A Checked is what a runner reports of a source that is to be compiled: facts and the text for the compiler, or why there are none.
type Checked struct {
	Loaded
	Text string // with Facts only
}

// Put builds the frame. A text that is longer than its bound becomes an error.
func (c *Checked) Put(f *Builder) {
	if len(c.Text) > MaxNativeText {
		c = &Checked{Loaded: Loaded{Error: "its text is too long for the compiler"}}
	}
	f.Begin(KindTextDone)
	f.PutString(c.Text)
	c.putBody(f)
}

// ParseChecked takes a payload of at most MaxChecked bytes apart, as ParseLoaded does.
func ParseChecked(payload []byte) (*Checked, error) {
	p := Parse(payload)
	text := p.TakeText(MaxNativeText)
	l, err := takeLoaded(&p)
	if err != nil {
		return nil, err
	}
	if (l.Facts != nil) != (text != "") {
		return nil, ErrFrame
	}
	return &Checked{Loaded: *l, Text: text}, nil
}

func putJSON(f *Builder, kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f.Begin(kind)
	f.PutRaw(body)
	return nil
}
