package cli

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// A build is what the binary knows about how it was made.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// readBuild asks the toolchain's own stamp, so that there is no version to set by hand and none to forget.
func readBuild() build {
	b := build{Version: "devel", Go: goruntime.Version(), OS: goruntime.GOOS, Arch: goruntime.GOARCH}
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

func (b build) String() string {
	text := fmt.Sprintf("recurgentd %s %s/%s %s", b.Version, goruntime.GOOS, goruntime.GOARCH, b.Go)
	if b.Revision != "" {
		text += " " + b.Revision
	}
	return text
}

func versionCommand(sh Shell) *cobra.Command {
	var out *output
	c := &cobra.Command{Use: "version", Short: "Tell the version of this binary", Args: cobra.NoArgs,
		Long:    "Tell the version of this binary: of the release, of Go, and of the source it was built from.\n\n" + exitsOfAll,
		Example: "  recurgentd version\n  recurgentd version --output yaml",
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if out.human() {
				return exitWith(ExitFailed, out.line("%s", b))
			}
			return exitWith(ExitFailed, out.value(b))
		}}
	out = addOutput(c, sh)
	return c
}
