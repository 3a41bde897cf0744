package app

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
)

// A Build is what the binary knows about how it was made.
type Build struct {
	Version  string `json:"version"` // of the release, or devel
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// ReadBuild reads the toolchain's own stamp, so that there is no version to set by hand and none to forget.
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

func (b Build) String() string {
	text := fmt.Sprintf("recurgentd %s %s/%s %s", b.Version, b.OS, b.Arch, b.Go)
	if b.Revision != "" {
		text += " " + b.Revision
	}
	return text
}
