package wire

import "encoding/json"

// ToolsArg is the argument of a runner's command line by which it runs tools, and no program.
const ToolsArg = "tools"

// What a process that runs tools finds open: the directory to work in, and behind it those that may be read.
const (
	ToolsDirFD  = 4
	ToolsReadFD = 5
)

// A ToolStep is one run of a compiler or linker.
type ToolStep struct {
	Tool   string   `json:"tool"`   // absolute path
	Args   []string `json:"args"`   // relative paths in them start at Tools.Dir
	Writes string   `json:"writes"` // path in Tools.Dir of the one file that it may write, which the sandbox makes
}

// Tools are steps to run one after another until one fails, each in a process that is confined to the directories.
type Tools struct {
	Dir    string     `json:"-"`      // the working directory
	Read   []string   `json:"-"`      // other directories that they may read
	Exec   string     `json:"exec"`   // the directory with the tools, which they may read and execute; every user must reach it
	Memory int64      `json:"memory"` // bytes of data that each may have
	CPU    int64      `json:"cpu"`    // seconds of processor time that each may use
	File   int64      `json:"file"`   // bytes of the file that it writes
	Steps  []ToolStep `json:"-"`

	Step   ToolStep `json:"step"`   // the one for this process; these are the sandbox's to set
	Reads  int      `json:"reads"`  // how many directories Read has
	Tasks  int64    `json:"tasks"`  // threads that it may have; 0 where its user has others
	Filter []byte   `json:"filter"` // of seccomp, as in Confinement
}

// ToolsDone says why a tool could not be started. Where it was started, it says nothing.
type ToolsDone struct {
	Failed string `json:"failed"`
}

// Put builds the frame.
func (t *Tools) Put(f *Builder) error { return putJSON(f, KindTools, t) }

// Put builds the frame.
func (d *ToolsDone) Put(f *Builder) error { return putJSON(f, KindToolsDone, d) }

// MaxToolsDone bounds the payload of a ToolsDone.
const MaxToolsDone = 64 << 10

// MaxNativeText bounds the text of a program's native form, in bytes.
const MaxNativeText = 4 << 20

// PutNativeText builds the frame that brings a source, for a text to be compiled.
func PutNativeText(f *Builder, source string) {
	f.Begin(KindText)
	f.PutString(source)
}

// A NativeText is what a runner made of a source: a text, or why there is none.
type NativeText struct {
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Put builds the frame.
func (t *NativeText) Put(f *Builder) {
	if err := putJSON(f, KindTextDone, t); err != nil || len(f.b)-frameHead > MaxNativeText {
		f.Begin(KindTextDone)
		f.PutRaw([]byte(`{"reason":"its text is too long"}`))
	}
}

// ParseNativeText takes a payload of at most MaxNativeText bytes apart. One of the two members is set.
func ParseNativeText(payload []byte) (t NativeText, err error) {
	if json.Unmarshal(payload, &t) != nil || (t.Text == "") == (t.Reason == "") {
		return t, ErrFrame
	}
	t.Reason = BoundText([]byte(t.Reason), MaxMessage)
	return t, nil
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
