package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
)

// BridgeOptions says what is bridged. All fields but Logger are required.
type BridgeOptions struct {
	Client  sdk.Transport // of the client, such as standard input and output
	URL     string        // of the daemon's /mcp
	HTTP    *http.Client  // adds the access token
	Version string        // of this binary
	Logger  zerolog.Logger
}

// maxEvent bounds one message of the daemon, in bytes: a large value comes twice, as text and structured.
const maxEvent = 64 << 20

// Bridge passes what the client asks for on to a daemon, until the client goes or ctx ends. Each side may speak another
// version of the protocol. Progress, cancellation and changes of the list pass through.
func Bridge(ctx context.Context, o BridgeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{server: newSDKServer(o.Version, o.Logger)}
	me := &sdk.Implementation{Name: "recurgentd-mcp", Version: o.Version}
	var err error
	b.daemon, err = sdk.NewClient(me, &sdk.ClientOptions{Logger: quiet(o.Logger), Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { b.notify() },
		ProgressNotificationHandler: func(ctx context.Context, r *sdk.ProgressNotificationClientRequest) { b.progress(ctx, r.Params) },
	}).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: o.URL, HTTPClient: o.HTTP, MaxEventSize: maxEvent, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return fmt.Errorf("speak MCP to the daemon at %s: %w", o.URL, err)
	}
	defer func() { _ = b.daemon.Close() }()
	b.notify() // the capability needs a tool
	b.server.AddReceivingMiddleware(b.pass)
	return b.server.Run(ctx, o.Client)
}

type bridge struct {
	server *sdk.Server
	daemon *sdk.ClientSession
}

// notify has the SDK notify the client that the list changed: it does so when a tool is added. The tool itself is never
// listed nor called here.
func (b *bridge) notify() {
	b.server.AddTool(&sdk.Tool{Name: listed, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
}

func (b *bridge) progress(ctx context.Context, p *sdk.ProgressNotificationParams) {
	for client := range b.server.Sessions() { // there is one
		_ = client.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: p.ProgressToken, Progress: p.Progress, Total: p.Total, Message: p.Message})
	}
}

// pass answers from the daemon.
func (b *bridge) pass(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch p := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			cursor := ""
			if p != nil {
				cursor = p.Cursor
			}
			return b.daemon.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		case *sdk.CallToolParamsRaw:
			return b.call(ctx, p)
		}
		return next(ctx, method, req)
	}
}

func (b *bridge) call(ctx context.Context, p *sdk.CallToolParamsRaw) (sdk.Result, error) {
	out := &sdk.CallToolParams{Name: p.Name, Meta: sdk.Meta{}}
	if len(p.Arguments) > 0 {
		out.Arguments = p.Arguments
	}
	for name, value := range p.Meta {
		if !strings.HasPrefix(name, "io.modelcontextprotocol/") { // each connection has its own
			out.Meta[name] = value
		}
	}
	res, err := b.daemon.CallTool(ctx, out)
	if err != nil {
		return nil, err
	}
	// The SDK has read numbers as floats, which may lose digits. The text has the same object as the daemon wrote it.
	if text, ok := first(res.Content); ok && res.StructuredContent != nil && json.Valid([]byte(text.Text)) {
		res.StructuredContent = json.RawMessage(text.Text)
	}
	return res, nil
}

func first(content []sdk.Content) (*sdk.TextContent, bool) {
	if len(content) == 0 {
		return nil, false
	}
	text, ok := content[0].(*sdk.TextContent)
	return text, ok
}
