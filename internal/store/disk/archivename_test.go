package disk

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A file of the archive belongs to the operation in its name. Files of earlier versions name none and belong to the
// operation at their time.
func TestMovedBy(t *testing.T) {
	t.Parallel()
	id := ids.New("aud")
	made := ids.Time(id)
	at := func(d time.Duration) string { return made.Add(d).UTC().Format(stampFormat) }
	target := store.Target{Role: "Odd Name", Method: "m"}
	for stamp, want := range map[string]bool{
		at(0) + "-0000000018-" + slug(id):             true,
		at(0) + "-0000000018-" + slug(ids.New("aud")): false,
		at(0) + "-18":                true,
		at(9*time.Second) + "-18":    true,
		at(10*time.Second) + "-18":   false,
		at(-time.Millisecond) + "-9": false,
	} {
		for _, x := range []store.Target{target, {Role: "Odd Name"}} {
			if name := archiveFile(x, stamp); movedBy(name, id) != want {
				t.Errorf("%s: %v, want %v", name, !want, want)
			}
		}
	}
	if movedBy(archiveFile(target, at(0)+"-18"), "") {
		t.Error("a file belongs to no operation")
	}
}
