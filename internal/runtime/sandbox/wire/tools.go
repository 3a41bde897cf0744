package wire

// A ToolStep is one run of a compiler or linker.
type ToolStep struct {
	Tool string   `json:"tool"` // absolute path
	Args []string `json:"args"` // relative paths in them start at Tools.Dir
}

// Tools are steps to run one after another until one fails, in a process that is confined to the directories.
type Tools struct {
	Dir    string     `json:"dir"`    // the working directory, which the steps may change
	Read   []string   `json:"read"`   // other directories that they may read
	Exec   string     `json:"exec"`   // the directory with the tools, which they may read and execute
	Memory int64      `json:"memory"` // bytes of data that each process may have
	Steps  []ToolStep `json:"steps"`
}
