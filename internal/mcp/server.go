// Package mcp serves methods to agents over the Model Context Protocol, with its official Go SDK: over HTTP without
// protocol sessions (Server.Handler), or bridged to standard input and output (Bridge). Each method of the catalog is a
// tool. Further tools call any method, search, judge an answer, create a session and upload a file. The files of the
// principal are resources. The server keeps no state of its clients beyond requests in progress.
//
// The result of a tool is the outcome of a call. A failure is a result with isError, so that the agent's model sees it
// and can act on it. Faults of the protocol, such as an unknown tool, are JSON-RPC errors.
package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Runtime is what the server needs from the daemon. Its methods may be called concurrently.
type Runtime interface {
	Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error)
	CallOwner(ctx context.Context, callID string) (string, error)
	CreateSession(ctx context.Context, q sessions.Request) (agent.Session, error)
	Judge(ctx context.Context, callID string, j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error)
	Files

	Start(q runtime.CallRequest) (callID string, done <-chan runtime.CallResult, err error)
	Progress(callID string) *progress.Log // nil if the call does not run here
	// CancelRunning cancels a call that runs here, and reports whether there is one. It records no operation.
	CancelRunning(callID string) bool
	Cancel(ctx context.Context, callID, actor string) error
	CallView(ctx context.Context, callID string) (operator.CallView, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error)
	PolicyInForce() *agent.Policy
}

// Options configures a Server. All fields but Address and Logger are required.
type Options struct {
	Runtime Runtime
	Tools   *catalog.Catalog
	Version string // of the daemon
	Address string // URL of the REST interface for clients; "" if unknown
	Now     func() time.Time
	Logger  zerolog.Logger
}

// Server serves MCP. Its methods may be called concurrently. Close must be called at the end.
type Server struct {
	o   Options
	log zerolog.Logger
	mcp *sdk.Server

	requests requests
	extras   map[string]extraTool // built-in tools by name; set once by New

	once sync.Once          // starts watch with the first subscription
	end  context.CancelFunc // ends life
	life context.Context    // of the goroutine that watches, which outlives requests
	idle sync.WaitGroup     // waits for watch
}

// pageSize is the number of tools or files on a page of a list.
const pageSize = 100

const instructions = `Each tool runs a stored program and returns the outcome: {"status": "ok", "value": ...} or an error with a type and a message. ` +
	`find_tools searches among all tools. call_method calls any method of any role by name, also one that does not exist yet: a model then writes its program. ` +
	`Calls share memory when they name the same session: new_session makes one, _meta "recurgent/session_id" names it. judge_call says that an answer was right or wrong. ` +
	`Files are resources. upload_file makes one; arguments and values refer to it as {"$file": "file_..."}.`

// New returns a Server. It does not read the catalog yet.
func New(o Options) (*Server, error) {
	if o.Runtime == nil || o.Tools == nil || o.Version == "" || o.Now == nil {
		return nil, errors.New("mcp: Runtime, Tools, Version and Now are required")
	}
	s := &Server{o: o, log: o.Logger, extras: map[string]extraTool{}, requests: requests{now: o.Now}}
	s.life, s.end = context.WithCancel(context.Background())
	s.mcp = newSDKServer(o.Version, o.Logger)
	for _, t := range extraTools() {
		s.extras[t.tool.Name] = t
		s.mcp.AddTool(t.tool, passed)
	}
	if err := s.addTasks(); err != nil {
		return nil, err
	}
	s.mcp.AddResourceTemplate(fileTemplate(), s.readResource)
	s.mcp.AddReceivingMiddleware(s.answer)
	return s, nil
}

// newSDKServer returns the SDK's server with the capabilities that this package serves.
func newSDKServer(version string, log zerolog.Logger) *sdk.Server {
	return sdk.NewServer(&sdk.Implementation{Name: "recurgentd", Title: "recurgentd", Version: version},
		&sdk.ServerOptions{
			Instructions: instructions, PageSize: pageSize, Logger: quiet(log),
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true},
				Resources: &sdk.ResourceCapabilities{}},
			// no result may be cached by others, since tools depend on the principal
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		})
}

// quiet returns a logger that passes the SDK's warnings to the debug log, since clients cause them.
func quiet(log zerolog.Logger) *slog.Logger {
	return slog.New(slog.NewTextHandler(debugWriter{log}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// debugWriter writes lines of the SDK's log to the daemon's debug log.
type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.Debug().Err(errors.New(string(bytes.TrimSpace(line)))).Msg("the MCP library reports")
	return len(line), nil
}

// Close stops watching the catalog, and waits for the end.
func (s *Server) Close() {
	s.end()
	s.idle.Wait()
}

type principalKey struct{}

// WithPrincipal returns a context that carries the principal of its requests.
func WithPrincipal(ctx context.Context, who access.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// principal returns the principal of the context. Without one it returns the zero value, which has no scopes.
func principal(ctx context.Context) access.Principal {
	who, _ := ctx.Value(principalKey{}).(access.Principal)
	return who
}

// owner returns the owner of the context's principal.
func owner(ctx context.Context) string { return principal(ctx).Owner() }

// reader returns the principal as lists of tools need it.
func reader(ctx context.Context) agent.Reader {
	return agent.Reader{Owner: owner(ctx), Operates: operates(ctx)}
}

// operates reports whether the principal has the scope operate.
func operates(ctx context.Context) bool { return principal(ctx).Scopes.Has(access.Operate) }

// answer is middleware of the SDK. It answers requests about methods and files itself, because their lists depend on
// the principal, and the SDK has one list for all. The SDK lists the built-in tools.
func (s *Server) answer(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch p := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			return s.list(ctx, next, req, p)
		case *sdk.ListResourcesParams:
			return s.listResources(ctx, next, req, p)
		case *sdk.ReadResourceParams:
			// the SDK uses one error code for all versions
			if read, ok := req.(*sdk.ReadResourceRequest); ok && fileID(p.URI) == "" {
				return nil, noResource(read)
			}
		case *sdk.CallToolParamsRaw:
			if call, ok := req.(*sdk.CallToolRequest); ok {
				result, err := s.callTool(ctx, call)
				return completed(call.Session, result), err
			}
		}
		if method == methodListen {
			if asksForTasks(ctx) && !declaresTasks(req.GetParams().GetMeta()) {
				return nil, undeclared()
			}
			s.once.Do(s.watch)
		}
		r, err := next(ctx, method, req)
		return declared(r), err
	}
}

// newestVersion is the first version of the protocol in which results must say whether they are complete.
const newestVersion = "2026-07-28"

// aComplete is an empty result with resultType "complete". The SDK sets that private field only for its own handlers;
// decoding JSON is the only other way.
var aComplete = func() (r sdk.CallToolResult) {
	if err := json.Unmarshal([]byte(`{"content": [], "resultType": "complete"}`), &r); err != nil {
		panic(err) // not reached: the text is valid
	}
	return r
}()

// completed marks the result as complete if the client's version requires it. It returns nil for nil.
func completed(client *sdk.ServerSession, result sdk.Result) sdk.Result {
	r, ok := result.(*sdk.CallToolResult)
	if !ok || r == nil || version(client) < newestVersion {
		return result
	}
	whole := aComplete
	whole.Meta, whole.Content, whole.StructuredContent, whole.IsError = r.Meta, r.Content, r.StructuredContent,
		r.IsError
	return &whole
}

// list returns a page of the tools: first the built-in ones, then methods by name. A cursor encodes the name of the
// last tool of a page.
func (s *Server) list(ctx context.Context, next sdk.MethodHandler, req sdk.Request,
	p *sdk.ListToolsParams) (sdk.Result, error) {
	after := ""
	if p != nil && p.Cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		if err != nil || !catalog.IsName(string(name)) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: "the cursor does not belong to this list"}
		}
		after, p.Cursor = string(name), ""
	}
	r, err := next(ctx, "tools/list", req)
	out, ok := r.(*sdk.ListToolsResult)
	if err != nil || !ok {
		return r, err
	}
	if after != "" {
		out.Tools = []*sdk.Tool{}
	}
	methods, more, err := s.o.Tools.List(ctx, reader(ctx), after, pageSize-len(out.Tools))
	if err != nil {
		return nil, rpcError(fmt.Errorf("the tools cannot be read: %w", err))
	}
	for _, t := range methods {
		out.Tools = append(out.Tools, Tool(t))
	}
	if more {
		out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(methods[len(methods)-1].Name))
	}
	if lister, ok := req.(*sdk.ListToolsRequest); ok && formOf(version(lister.Session)) == coreTasks {
		return s.withExecution(out), nil
	}
	return out, nil
}

// settle is how long changes are collected before subscribers are notified.
const settle = 50 * time.Millisecond

// watch notifies all subscribers of changes until Close. It cannot select them: the changed tool may be visible to only
// some of them, but the SDK notifies all.
func (s *Server) watch() {
	hints, stop := s.o.Tools.Subscribe()
	// the first hint always notifies: the revision before the subscription is unknown
	last := int64(-1)
	s.idle.Go(func() {
		defer stop()
		for {
			select {
			case <-s.life.Done():
				return
			case <-hints:
			}
			select {
			case <-s.life.Done():
				return
			case <-time.After(settle):
			}
			revision, err := s.o.Tools.Revision(s.life)
			switch {
			case err == nil && revision != last:
				last = revision
				s.notify()
			case err != nil && s.life.Err() == nil:
				s.log.Warn().Err(err).Msg("the tools cannot be read")
			}
		}
	})
}

// notify makes the SDK notify all subscribers, by adding a tool again.
func (s *Server) notify() {
	for _, t := range extraTools() {
		if t.tool.Name == listed {
			s.mcp.AddTool(t.tool, passed)
		}
	}
}
