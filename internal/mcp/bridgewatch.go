package mcp

import (
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// listenAs is the id of the bridge's own request to hear of changes.
const listenAs = "recurgentd-mcp"

// watch has the client hear of changes of the list, which its version of the protocol lets a server say at any time: from when it returns, as far as
// the daemon answers.
func (b *bridge) watch() {
	ready := make(chan struct{})
	begun := sync.OnceFunc(func() { close(ready) })
	b.watching.Go(func() {
		for again := false; ; again = true {
			b.listen(begun, again)
			begun()
			select {
			case <-time.After(listenPause):
			case <-b.ctx.Done():
				return
			}
		}
	})
	<-ready
}

// listenPause is how long after the end of the stream of changes it is opened again.
const listenPause = 5 * time.Second

// listen follows changes of the list until the daemon or the bridge ends. What changed while nobody listened is not known, so that a client hears of it again.
func (b *bridge) listen(begun func(), again bool) {
	request := agent.Encoded(map[string]any{"jsonrpc": "2.0", "id": listenAs, "method": methodListen,
		"params": map[string]any{
			"notifications": map[string]any{"toolsListChanged": true},
			"_meta": map[string]any{metaVersion: newestVersion, metaClient: map[string]any{"name": listenAs,
				"version": "1"},
				metaCapabilities: map[string]any{}}}})
	m, _ := readMessage(request)
	err := b.each(b.ctx, request, b.header(m), func(message []byte) (done bool) {
		begun()
		m, _ := readMessage(message)
		if m.method == methodListChanged || again && m.method == methodListens {
			b.write([]byte(`{"jsonrpc":"2.0","method":"` + methodListChanged + `"}`))
		}
		return m.method == ""
	})
	if err != nil && b.ctx.Err() == nil {
		b.o.Logger.Debug().Err(errors.New(err.Message)).Msg(
			"changes of the list of tools are not heard of until the daemon answers again")
	}
}
