package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Files are the operations on files that the server needs. MCP serves files as resources. Owners are as in
// files.Keeper.
type Files interface {
	Upload(ctx context.Context, f agent.File, body io.Reader) (agent.File, error)
	File(ctx context.Context, owner, id string) (agent.File, error)
	OpenFile(ctx context.Context, owner, id string) (*files.Reader, error)
	ListFiles(ctx context.Context, owner, after string, limit int) ([]agent.File, error)
	Settled() error // waits until what was read is durable
}

// resourcePrefix is the URI of a file without its id.
const resourcePrefix = "recurgent://files/"

const (
	filePrefix = "file_"
	maxFileID  = 64 // bytes
)

// maxRead bounds a file that is read as a resource, in bytes: the whole result is in memory, in base64.
const maxRead = 4 << 20

// maxLinks bounds the links to files in a result. The structured content still refers to all files.
const maxLinks = 100

// codeNoResource is the error code of a missing resource before newestVersion, which uses -32602.
const codeNoResource = -32002

// firstWithLinks is the first version of the protocol with resource_link.
const firstWithLinks = "2025-06-18"

// fileTemplate describes the URIs of files to clients.
func fileTemplate() *sdk.ResourceTemplate {
	return &sdk.ResourceTemplate{URITemplate: resourcePrefix + "{id}", Name: "file", Title: "Files",
		Description: "A file that was uploaded or that a method made. Arguments and values refer to it as {\"" +
			agent.FileKey + "\": id}."}
}

func fileURI(id string) string { return resourcePrefix + id }

// fileID returns the id of the file with that URI, or "" if it is not the URI of a file.
func fileID(uri string) string {
	id, ours := strings.CutPrefix(uri, resourcePrefix)
	if !ours || !isFileID(id) {
		return ""
	}
	return id
}

// fileName returns the name of a file, or its id if it has none.
func fileName(f *agent.File) string {
	if f.Name == "" {
		return f.ID
	}
	return f.Name
}

// version returns the client's protocol version.
func version(client *sdk.ServerSession) string {
	if said := client.InitializeParams(); said != nil {
		return said.ProtocolVersion
	}
	return newestVersion
}

// fileOwner returns the owner whose files the request may read. "" means all owners.
func fileOwner(ctx context.Context) string {
	if operates(ctx) {
		return ""
	}
	return owner(ctx)
}

// listResources returns a page of the owner's files, newest first. A cursor encodes the id of the last file of a page.
func (s *Server) listResources(ctx context.Context, next sdk.MethodHandler, req sdk.Request,
	p *sdk.ListResourcesParams) (sdk.Result, error) {
	after := ""
	if p != nil && p.Cursor != "" {
		id, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		if err != nil || !isFileID(string(id)) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: "the cursor does not belong to this list"}
		}
		after, p.Cursor = string(id), ""
	}
	r, err := next(ctx, "resources/list", req)
	out, ok := r.(*sdk.ListResourcesResult)
	if err != nil || !ok {
		return r, err
	}
	list, err := s.o.Runtime.ListFiles(ctx, owner(ctx), after, pageSize+1)
	if err == nil {
		err = s.o.Runtime.Settled()
	}
	if err != nil {
		return nil, rpcError(fmt.Errorf("the files cannot be listed: %w", err))
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(list[pageSize-1].ID))
	}
	out.Resources = make([]*sdk.Resource, len(list))
	for i := range list {
		f := &list[i]
		out.Resources[i] = &sdk.Resource{URI: fileURI(f.ID), Name: fileName(f), MIMEType: f.MediaType, Size: f.Bytes}
	}
	return out, nil
}

// isFileID reports whether a text has the form of a file id.
func isFileID(id string) bool {
	if !strings.HasPrefix(id, filePrefix) || len(id) > maxFileID {
		return false
	}
	for _, c := range []byte(id[len(filePrefix):]) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return true
}

// readResource returns a file, as text if it is UTF-8 text, else in base64.
func (s *Server) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id := fileID(req.Params.URI)
	f, err := s.o.Runtime.OpenFile(ctx, fileOwner(ctx), id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
		return nil, noResource(req)
	case err != nil:
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }() // it was only read from
	if f.Bytes > maxRead {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Data: agent.Encoded(map[string]any{"uri": req.Params.URI, "size": f.Bytes, "limit": maxRead}),
			Message: fmt.Sprintf("the file has %d bytes, and resources/read returns up to %d: download it with "+
				"GET %s/v1/files/%s/content, which also takes ranges, or with recurgentd files get %s",
				f.Bytes, maxRead, s.o.Address, id, id)}
	}
	if err := room(ctx, f.Bytes); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err == nil {
		err = s.o.Runtime.Settled()
	}
	if err != nil {
		return nil, unreadable(err)
	}
	content := &sdk.ResourceContents{URI: req.Params.URI, MIMEType: f.MediaType, Blob: data}
	if len(data) == 0 {
		content.Blob = []byte{} // the SDK omits an empty text
	} else if name, err := charsets.Guess(bytes.NewReader(data),
		""); err == nil && name == charsets.UTF8 && utf8.Valid(data) {
		content.Text, content.Blob = string(data), nil
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{content}}, nil
}

// unreadable returns the error for a file that exists but cannot be read.
func unreadable(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: "the file is damaged: its bytes differ from those that were stored"}
	}
	return rpcError(fmt.Errorf("the file cannot be read: %w", err))
}

// noResource returns the error for a URI that does not exist or that the client may not read. Its code depends on the
// protocol version.
func noResource(req *sdk.ReadResourceRequest) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "there is no resource with that URI: resources/list lists all",
		Data:    agent.Encoded(map[string]string{"uri": req.Params.URI})}
	if version(req.Session) < newestVersion {
		e.Code = codeNoResource
	}
	return e
}

// links returns a link for each file that the value refers to and the client may read. Versions without links get none.
func (s *Server) links(ctx context.Context, client *sdk.ServerSession, value json.RawMessage) (out []sdk.Content) {
	ids := agent.FileRefs(value)
	if len(ids) == 0 || version(client) < firstWithLinks {
		return nil
	}
	for _, id := range ids {
		if len(out) == maxLinks {
			break
		}
		// a reference to a deleted file is an ordinary value
		if f, err := s.o.Runtime.File(ctx, fileOwner(ctx), id); err == nil {
			out = append(out, fileLink(&f))
		}
	}
	return out
}

// fileLink returns a link to a file, for the content of a result.
func fileLink(f *agent.File) *sdk.ResourceLink {
	size := f.Bytes
	return &sdk.ResourceLink{URI: fileURI(f.ID), Name: fileName(f), MIMEType: f.MediaType, Size: &size}
}
