// Package docs holds the documents against the binary: commands are run and their output compared, generated parts are
// compared with what they are generated from, and what is named exists.
package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "curl" {
		os.Exit(actAsCurl(os.Args[1:]))
	}
	rig.Main(m)
}
