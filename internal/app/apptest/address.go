package apptest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address returns a free HOST:PORT for a server that starts later or restarts. The host is a random loopback address,
// so no other process takes the port meanwhile.
func Address(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
