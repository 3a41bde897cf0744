package disk

import (
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// LeftOut lists files of an archive or a directory that were left out for the same reason.
type LeftOut struct {
	Why   string   `json:"why"`
	Files int      `json:"files"`
	Names []string `json:"names"` // the first few
}

// Reasons for leaving a file out.
const (
	leftDerived = "made anew where they are needed"
	leftKey     = "keys, which no archive may bring: put the file there by hand, mode 0600"
	leftAside   = "moved aside as damaged, or kept from before a migration"
	leftForm    = "not what their names say"
	leftUnknown = "of no kind that this recurgentd knows"
)

// leftOuts collects files that are left out, by reason.
type leftOuts []LeftOut

func (l *leftOuts) add(why, name string) {
	const most = 5
	i := slices.IndexFunc(*l, func(x LeftOut) bool { return x.Why == why })
	if i < 0 {
		i = len(*l)
		*l = append(*l, LeftOut{Why: why})
	}
	x := &(*l)[i]
	if x.Files++; x.Files <= most {
		x.Names = append(x.Names, name)
	}
}

// whyLeft returns the reason for leaving out a file that is of no kind.
func whyLeft(name string) string {
	_, _, within := kindOf(name)
	base := path.Base(within)
	switch {
	case isCorruptName(within), strings.HasPrefix(within, backupDir+"/"):
		return leftAside
	case name == store.SecretsKeyFile:
		return leftKey
	case strings.HasPrefix(name, store.DerivedDir+"/"), within == indexFile, strings.HasSuffix(base, ".idx") &&
		(path.Dir(within) == "calls" || path.Dir(within) == "values"),
		name == lockFile, strings.HasPrefix(within, vfs.TempDir+"/"):
		return leftDerived
	}
	return leftUnknown
}
