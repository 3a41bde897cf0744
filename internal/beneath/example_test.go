package beneath_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/recurgentd/recurgentd/internal/beneath"
)

// A link below the directory leads nowhere.
func ExampleDir_ReadFile() {
	path, err := os.MkdirTemp("", "beneath")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(path)
	_ = os.WriteFile(filepath.Join(path, "note"), []byte("hello"), 0o600)
	_ = os.Symlink("/etc/hostname", filepath.Join(path, "link"))

	dir, err := beneath.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()
	text, err := dir.ReadFile("note")
	fmt.Printf("%s %v\n", text, err)
	_, err = dir.ReadFile("link")
	fmt.Println(err != nil)
	// Output:
	// hello <nil>
	// true
}
