package replicas

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// pair is a connection through a proxy: the client's end and the server's.
func pair(t *testing.T, p *Proxy, listener net.Listener) (client, server *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client, server = c.(*net.TCPConn), s.(*net.TCPConn)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	send(t, client, server, "hello")
	send(t, server, client, "there")
	return client, server
}

func send(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text+"\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(to).ReadString('\n'); got != text+"\n" {
		t.Fatalf("sent %q, received %q: %v", text, got, err)
	}
}

func ended(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, want) {
		t.Errorf("the connection ended with %v, want %v", err, want)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := NewProxy(t, "tcp", listener.Addr().String())

	client, server := pair(t, p, listener)
	p.Cut()
	ended(t, client, syscall.ECONNRESET)
	ended(t, server, syscall.ECONNRESET)

	client, server = pair(t, p, listener)
	p.HalfCloseReplies()
	ended(t, client, io.EOF)
	send(t, client, server, "still")

	client, server = pair(t, p, listener)
	p.HalfCloseRequests()
	ended(t, server, io.EOF)
	send(t, server, client, "still")

	client, server = pair(t, p, listener)
	release := p.Hold()
	if _, err := io.WriteString(client, "held\n"); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() { line, _ := bufio.NewReader(server).ReadString('\n'); got <- line }()
	select {
	case line := <-got:
		t.Errorf("%q passed while everything was held", line)
	default:
	}
	release()
	if line := <-got; line != "held\n" {
		t.Errorf("after the release came %q", line)
	}

	p.Target("unix", "/nowhere/at/all")
	c, err := net.Dial("tcp", p.Address)
	if errors.Is(err, syscall.ECONNRESET) {
		return // before it was seen to be there
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended(t, c, syscall.ECONNRESET)
}
