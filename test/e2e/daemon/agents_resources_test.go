package daemon

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// upload has a client keep a file, and returns its reference and URI.
func (a *mcpClient) upload(arguments object) (ref object, uri string) {
	a.t.Helper()
	r := a.call("upload_file", arguments, nil)
	ref, _ = r.outcome["file"].(object)
	id, _ := ref["$file"].(string)
	if r.IsError || !strings.HasPrefix(id, "file_") || len(ref) != 1 {
		a.t.Fatalf("upload_file %v: %s", arguments["name"], r.text)
	}
	return ref, "recurgent://files/" + id
}

// links returns the links of a result by the name of their file.
func (r result) links() map[string]*mcp.ResourceLink {
	all := map[string]*mcp.ResourceLink{}
	for _, c := range r.Content {
		if link, ok := c.(*mcp.ResourceLink); ok {
			all[link.Name] = link
		}
	}
	return all
}

// read reads a resource.
func (a *mcpClient) read(uri string) *mcp.ResourceContents {
	a.t.Helper()
	r, err := a.ReadResource(a.t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || len(r.Contents) != 1 || r.Contents[0].URI != uri {
		a.t.Fatalf("%s: %+v, %v", uri, r, err)
	}
	return r.Contents[0]
}

// noResource checks that a resource is not there for the client, by the code of its version of the protocol.
func (a *mcpClient) noResource(what, uri string) {
	a.t.Helper()
	want := int64(-32002)
	if a.version == newest {
		want = -32602
	}
	var rpc *jsonrpc.Error
	if r, err := a.ReadResource(a.t.Context(),
		&mcp.ReadResourceParams{URI: uri}); !errors.As(err, &rpc) || rpc.Code != want ||
		!strings.Contains(rpc.Message, "there is no resource") {
		a.t.Errorf("%s: %v, %v; want error %d", what, r, err, want)
	}
}

// An agent uploads files, passes them to a tool, and reads what the tool has made, in every version of the protocol and
// over both transports.
func TestMCPResources(t *testing.T) {
	t.Parallel()
	for _, version := range []string{newest, legacy, "2025-06-18", "2025-03-26", "2024-11-05"} {
		for _, way := range []string{"http", "stdio"} {
			t.Run(version+" over "+way, func(t *testing.T) {
				t.Parallel()
				d := rig.Start(t, rig.NewModel(t, rig.Script{"copier.copy": {progCopiesWithin}}))
				if way == "http" {
					filesStory(d, overHTTP(t, d, version))
				} else {
					filesStory(d, overStdio(t, version, nil, "--url", d.URL))
				}
			})
		}
	}
}

func filesStory(d *rig.Daemon, a *mcpClient) {
	t := d.T
	t.Helper()
	ref, text := a.upload(object{"name": "notes.md", "media_type": "text/markdown", "content": "a text: ü"})
	if got := a.read(text); got.Text != "a text: ü" || got.Blob != nil || got.MIMEType != "text/markdown" {
		t.Errorf("a text: %+v", got)
	}
	picture := "\x89PNG\r\n\x1a\n\x00\x00\xff"
	_, binary := a.upload(object{"content": base64.StdEncoding.EncodeToString([]byte(picture)) + "\n",
		"encoding": "base64", "media_type": "image/png"})
	if got := a.read(binary); string(got.Blob) != picture || got.Text != "" || got.MIMEType != "image/png" {
		t.Errorf("bytes: %+v", got)
	}
	_, empty := a.upload(object{"content": ""})
	if got := a.read(empty); len(got.Blob) != 0 || got.Text != "" || !strings.HasPrefix(got.MIMEType, "text/plain") {
		t.Errorf("nothing: %+v", got)
	}

	r := a.call("call_method", object{"role": "copier", "method": "copy", "args": []any{ref}}, nil)
	made, _ := r.outcome["value"].(object)
	copied, _ := made["made"].(object)
	links := r.links()
	switch link := links["copy.txt"]; {
	case a.version < "2025-06-18":
		if len(links) > 0 {
			t.Errorf("a version without links got %v", links)
		}
	case link == nil || len(links) != 2 || link.URI != fmt.Sprint("recurgent://files/", copied["$file"]) ||
		link.MIMEType != "text/plain" || link.Size == nil || *link.Size != 10 || links["notes.md"] == nil ||
		links["notes.md"].URI != text:
		t.Errorf("links: %v, value %v", links, made)
	default:
		if got := a.read(link.URI); got.Text != "a text: ü" {
			t.Errorf("what the tool made: %+v", got)
		}
	}

	all := map[string]*mcp.Resource{}
	for one, err := range a.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all[one.URI] = one
	}
	if len(all) != 4 || all[text] == nil || all[text].Name != "notes.md" || all[text].MIMEType != "text/markdown" ||
		all[text].Size != 10 || all[binary] == nil || !strings.HasPrefix(all[binary].Name, "file_") {
		t.Errorf("listed: %v", all)
	}
	templates, err := a.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 ||
		templates.ResourceTemplates[0].URITemplate != "recurgent://files/{id}" {
		t.Errorf("templates: %+v, %v", templates, err)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/files/"+strings.TrimPrefix(text, "recurgent://files/"), nil)
	for what, uri := range map[string]string{"a deleted file": text,
		"no such file": "recurgent://files/file_00000000000000000000000000", "no id": "recurgent://files/",
		"a path":              "recurgent://files/../x",
		"a path below a file": binary + "/content", "an upper-case id": strings.ToUpper(binary),
		"another scheme": "file:///etc/passwd", "an address": d.URL + "/v1/files", "no URI": "x"} {
		a.noResource(what, uri)
	}
}

// More files than a page has are listed in pages, newest first.
func TestMCPResourcePages(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	for i := range 101 {
		d.Send(http.MethodPost, fmt.Sprintf("/v1/files?name=f%03d", i), []byte("x"), nil)
	}
	a := overHTTP(t, d, newest)
	page, err := a.ListResources(t.Context(), nil)
	if err != nil || len(page.Resources) != 100 || page.NextCursor == "" || page.Resources[0].Name != "f100" {
		t.Fatalf("the first page: %+v, %v", page, err)
	}
	rest, err := a.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: page.NextCursor})
	if err != nil || len(rest.Resources) != 1 || rest.NextCursor != "" || rest.Resources[0].Name != "f000" {
		t.Errorf("the last page: %+v, %v", rest, err)
	}
	for _, cursor := range []string{"nonsense", "ZmlsZV8uLi8", page.NextCursor + "A",
		base64.RawURLEncoding.EncodeToString([]byte("part_00000000000000000000000000"))} {
		var rpc *jsonrpc.Error
		if _, err := a.ListResources(t.Context(),
			&mcp.ListResourcesParams{Cursor: cursor}); !errors.As(err, &rpc) || rpc.Code != -32602 {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
}

// A file above the limit of resources is refused with an error that names the other way to read it.
func TestMCPLargeResource(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	a := overHTTP(t, d, newest)
	put := func(n int) (id string) {
		id, _ = d.Send(http.MethodPost, "/v1/files", []byte(strings.Repeat("x", n)), nil).Object(t)["id"].(string)
		return id
	}
	if got := a.read("recurgent://files/" + put(4<<20)); len(got.Text) != 4<<20 {
		t.Errorf("at the bound: %d bytes", len(got.Text))
	}
	id := put(4<<20 + 1)
	var rpc *jsonrpc.Error
	_, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "recurgent://files/" + id})
	if !errors.As(err, &rpc) || rpc.Code != -32602 || !strings.Contains(rpc.Message, "GET /v1/files/"+id+"/content") ||
		!strings.Contains(string(rpc.Data), `"size":4194305`) {
		t.Errorf("beyond the bound: %v", err)
	}
}

// Whose files a client may list, read and keep is as over HTTP: those of its token, in the namespace of its token.
func TestMCPResourcesBelongToOwners(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		strings.Join([]string{"ann ann-token-0123456789abcdef scopes=call,read",
			"ben ben-token-0123456789abcdef scopes=call,read",
			"eve eve-token-0123456789abcdef scopes=read",
			"ann far-token-0123456789abcdef scopes=call,read namespace=far",
			"ops ops-token-0123456789abcdef"}, "\n")+"\n"))
	as := func(name string) *mcpClient {
		return connectMCP(t, &mcp.StreamableClientTransport{Endpoint: d.URL + "/mcp",
			HTTPClient: d.As(name + "-token-0123456789abcdef").Plain()}, legacy)
	}
	ann := as("ann")
	_, uri := ann.upload(object{"name": "secret.txt", "content": "of ann"})
	for _, name := range []string{"ben", "eve", "far"} {
		other := as(name)
		other.noResource("ann's file as "+name, uri)
		if list, err := other.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 0 {
			t.Errorf("%s lists %+v, %v", name, list, err)
		}
	}
	if got := as("ops").read(uri); got.Text != "of ann" { // as GET /v1/files/{id}/content for those who operate
		t.Errorf("an operator reads %+v", got)
	}
	if r, err := as("eve").CallTool(t.Context(), &mcp.CallToolParams{Name: "upload_file",
		Arguments: object{"content": "x"}}); err == nil {
		t.Errorf("a token without the scope call keeps a file: %+v", r)
	}
	session := d.As("ann-token-0123456789abcdef").Session("r")
	_, within := ann.upload(object{"content": "of the session", "session_id": session})
	if r := as("ben").call("upload_file", object{"content": "x", "session_id": session},
		nil); !r.IsError || !strings.Contains(r.text, "no session of yours") {
		t.Errorf("into another's session: %s", r.text)
	}
	d.As("ann-token-0123456789abcdef").Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+session, nil)
	ann.noResource("a file of a deleted session", within)
}

// A refused upload is a result with the reason, so that the agent's model can correct it.
func TestMCPUploadsAreRefused(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil, "--file-max", "1KiB")
	a := overHTTP(t, d, newest)
	for what, c := range map[string]struct {
		arguments object
		words     string
	}{
		"no content":         {object{"name": "x"}, "content"},
		"a null content":     {object{"content": nil}, "content"},
		"a list":             {object{"content": []any{"x"}}, "content"},
		"no base64":          {object{"content": "a!b", "encoding": "base64"}, "arguments/content is not base64"},
		"another encoding":   {object{"content": "x", "encoding": "hex"}, "encoding"},
		"no media type":      {object{"content": "x", "media_type": "nonsense"}, "arguments/media_type"},
		"a large file":       {object{"content": strings.Repeat("x", 1025)}, "a file can have at most 1024 bytes"},
		"an unknown session": {object{"content": "x", "session_id": "sess_none"}, "no session of yours"},
		"an unknown member":  {object{"content": "x", "path": "/etc"}, "path"},
	} {
		if r := a.call("upload_file", c.arguments, nil); !r.IsError || !strings.Contains(r.text, c.words) {
			t.Errorf("%s: %s", what, r.text)
		}
	}
	if left := d.List("/v1/files"); len(left) != 0 {
		t.Errorf("kept: %v", left)
	}
}
