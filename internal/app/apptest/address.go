package apptest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address is a host and port for a server that starts later, or starts again: nobody listens there. The host is one of loopback that only the test chooses
// ports of, so that no other process is given the port meanwhile.
func Address(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
