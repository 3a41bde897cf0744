package app

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
)

// A Build describes how the binary was built.
type Build struct {
	Version  string `json:"version"`            // release version, or "devel"
	Revision string `json:"revision,omitempty"` // VCS revision; "+changes" marks a modified tree
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// ReadBuild returns the information that the go command stamps into the binary.
func ReadBuild() Build {
	b := Build{Version: "devel", Go: goruntime.Version(), OS: goruntime.GOOS, Arch: goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Revision != "" {
		b.Revision += "+changes"
	}
	return b
}

// String returns the line of the command version.
func (b Build) String() string {
	text := fmt.Sprintf("recurgentd %s %s/%s %s", b.Version, b.OS, b.Arch, b.Go)
	if b.Revision != "" {
		text += " " + b.Revision
	}
	return text
}
