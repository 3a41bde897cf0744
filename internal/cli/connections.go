package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// connection is a connection in the form of the REST interface.
type connection struct {
	Name              string         `json:"name,omitempty"`
	Description       string         `json:"description"`
	Hosts             []string       `json:"hosts"`
	Methods           []string       `json:"methods"`
	Roles             []string       `json:"roles"`
	Auth              connectionAuth `json:"auth"`
	IdempotencyHeader string         `json:"idempotency_header,omitempty"`
	SecretSet         bool           `json:"secret_set,omitempty"`
	Problem           string         `json:"problem,omitempty"`
}

type connectionAuth struct {
	Type     string   `json:"type"`
	Name     string   `json:"name,omitempty"`
	Username string   `json:"username,omitempty"`
	TokenURL string   `json:"token_url,omitempty"`
	ClientID string   `json:"client_id,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
	Secret   any      `json:"secret,omitempty"` // a string, or the location to read it from
}

func connectionsCommand(sh Shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "connections",
		Short: "Give programs the use of APIs whose keys they never see",
		Long: `Give programs the use of APIs whose keys they never see. A connection names hosts, HTTP methods and roles, and
holds a secret. The daemon puts it into the requests that match; neither programs nor the model get to see it. Secrets are
read from standard input, never from a flag, and stored encrypted.

` + exitsOfClients,
		Example: `  recurgentd connections set weather --host api.example.org < key.txt
  recurgentd connections list
  recurgentd connections rm weather`,
		Args: cobra.NoArgs,
	}
	root.AddCommand(connectionsSet(sh),
		operatorCommand(sh, "recurgentd connections", operation{use: "list",
			short: "List connections, without their secrets", example: "--output yaml",
			run: (*errand).listConnections}),
		operatorCommand(sh, "recurgentd connections", operation{use: "rm NAME",
			short: "Delete a connection and its secret, which no undo brings back", example: "weather --reason rotated",
			least: 1, most: 1, audited: true,
			run: (*errand).removeConnection}))
	return root
}

// connectionFlags holds the flags of connections set. Flags that are not given leave the connection unchanged.
type connectionFlags struct {
	given     connection
	env, file string
	keep      bool
}

func connectionsSet(sh Shell) *cobra.Command {
	var x connectionFlags
	var c *cobra.Command
	c = operatorCommand(sh, "recurgentd connections", operation{use: "set NAME",
		short: "Make or change a connection; its secret comes from standard input", least: 1, most: 1,
		long: `Make or change a connection. Its secret is read from standard input: from a terminal without showing it, else up to the end, without
a last line break. Flags that are not given leave a connection that exists as it is, so that this command with a new secret
alone rotates it. A new connection is for GET requests of every role, unless --method and --role say otherwise.`,
		example: "weather --host api.example.org --description \"forecasts by city\" < key.txt",
		run:     func(t *errand) error { return t.setConnection(c, &x) }})
	c.Example += `
  recurgentd connections set maps --host '*.maps.example.org' --type query --name key < key.txt
  recurgentd connections set books --host api.books.example.org --type oauth2 --token-url https://id.example.org/token --client-id recurgentd --method GET --method POST --role accountant --secret-env RECURGENT_SECRET_BOOKS
  recurgentd connections set weather < new-key.txt
  recurgentd connections set weather --description "forecasts and warnings" --keep-secret`
	f := c.Flags()
	f.StringVar(&x.given.Description, "description", "", "what the API is for; the model reads it")
	f.StringSliceVar(&x.given.Hosts, "host", nil, "host, host:port or *.domain; may be given several times")
	f.StringSliceVar(&x.given.Methods, "method", nil,
		"HTTP method that it grants; may be given several times (default GET)")
	f.StringSliceVar(&x.given.Roles, "role", nil,
		"role whose programs may use it; may be given several times (default all)")
	f.StringVar(&x.given.Auth.Type, "type", "", "bearer, header, query, basic, oauth2 or url (default bearer)")
	f.StringVar(&x.given.Auth.Name, "name", "", "the header or the query parameter that holds the secret")
	f.StringVar(&x.given.Auth.Username, "username", "", "of basic")
	f.StringVar(&x.given.Auth.TokenURL, "token-url", "", "of oauth2: where the secret buys access tokens")
	f.StringVar(&x.given.Auth.ClientID, "client-id", "", "of oauth2")
	f.StringSliceVar(&x.given.Auth.Scopes, "scope", nil, "of oauth2; may be given several times")
	f.StringVar(&x.given.IdempotencyHeader, "idempotency-header", "",
		"the header that carries a key for each write, such as Idempotency-Key")
	f.StringVar(&x.env, "secret-env", "",
		"read the secret from this variable of the daemon's environment, RECURGENT_SECRET_...")
	f.StringVar(&x.file, "secret-file", "", "read the secret from this file in the daemon's --secrets-dir")
	f.BoolVar(&x.keep, "keep-secret", false, "keep the secret that the connection has")
	c.MarkFlagsMutuallyExclusive("secret-env", "secret-file", "keep-secret")
	return c
}

func connectionPath(name string) string { return "/v1/connections/" + url.PathEscape(name) }

// setConnection creates a connection, or changes the members whose flags were given. It needs a secret, or
// --keep-secret.
func (t *errand) setConnection(c *cobra.Command, x *connectionFlags) error {
	path := connectionPath(t.args[0])
	next := connection{Methods: []string{http.MethodGet}, Roles: []string{"*"}, Auth: connectionAuth{Type: "bearer"}}
	err := t.c.Get(t.ctx, path, &next)
	var refused *client.Refusal
	if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusNotFound) {
		return err
	}
	// The request does not take these members of the reply.
	next.Name, next.SecretSet, next.Problem = "", false, ""
	x.change(c, &next)
	switch {
	case x.env != "":
		next.Auth.Secret = map[string]string{"env": x.env}
	case x.file != "":
		next.Auth.Secret = map[string]string{"file": x.file}
	case x.keep:
		next.Auth.Secret = nil
	default:
		secret, err := t.sh.readSecret(t.ctx, "secret of "+t.args[0]+": ")
		if err != nil {
			return exitWith(ExitUsage, err)
		}
		next.Auth.Secret = secret
	}
	data, err := t.c.Do(t.ctx, http.MethodPut, path, next)
	if err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.document(data)
	}
	var made connection
	if err := t.read(path, data, &made); err != nil {
		return err
	}
	if made.Problem != "" {
		return t.out.line("%s: set, but %s", text.Cell(made.Name), text.Cell(made.Problem))
	}
	return t.out.line("%s: set; used for %s of %s", text.Cell(made.Name), text.Cell(strings.Join(made.Methods, ", ")),
		text.Cell(strings.Join(made.Hosts, ", ")))
}

// change applies the given flags to the connection. A change of type drops the members of the old type.
func (x *connectionFlags) change(c *cobra.Command, next *connection) {
	given := func(flag string) bool { return c.Flags().Changed(flag) }
	if given("type") && x.given.Auth.Type != next.Auth.Type {
		next.Auth = connectionAuth{Type: x.given.Auth.Type}
	}
	for flag, set := range map[string]struct {
		into *string
		to   string
	}{"description": {&next.Description, x.given.Description}, "name": {&next.Auth.Name, x.given.Auth.Name},
		"username":           {&next.Auth.Username, x.given.Auth.Username},
		"token-url":          {&next.Auth.TokenURL, x.given.Auth.TokenURL},
		"client-id":          {&next.Auth.ClientID, x.given.Auth.ClientID},
		"idempotency-header": {&next.IdempotencyHeader, x.given.IdempotencyHeader}} {
		if given(flag) {
			*set.into = set.to
		}
	}
	for flag, set := range map[string]struct {
		into *[]string
		to   []string
	}{"host": {&next.Hosts, x.given.Hosts}, "method": {&next.Methods, x.given.Methods},
		"role": {&next.Roles, x.given.Roles}, "scope": {&next.Auth.Scopes, x.given.Auth.Scopes}} {
		if given(flag) {
			*set.into = set.to
		}
	}
}

// readSecret reads a secret: from a terminal one line without echo, otherwise all of stdin without a final line break.
func (sh Shell) readSecret(ctx context.Context, prompt string) (string, error) {
	if f, ok := sh.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(sh.Stderr, prompt)
		defer fmt.Fprintln(sh.Stderr)
		return readHidden(ctx, int(f.Fd()))
	}
	const longest = 64 << 10
	data, err := io.ReadAll(io.LimitReader(sh.Stdin, longest))
	secret := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if err == nil && secret == "" {
		err = errors.New("standard input is empty; pipe the secret in, or use --secret-env, --secret-file or " +
			"--keep-secret")
	}
	return secret, err
}

// readHidden reads a line from the terminal without echo. If ctx ends first, it restores the terminal.
func readHidden(ctx context.Context, terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	// A read cannot be canceled, so it may outlive this function. It ends with the process.
	go func() {
		text, err := term.ReadPassword(terminal)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done():
		return "", errors.Join(errors.New("interrupted; nothing was changed"), term.Restore(terminal, before))
	}
}

func (t *errand) listConnections() error {
	all, err := pages[connection](t, "/v1/connections")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, c := range all {
		state := "ready"
		if c.Problem != "" {
			state = c.Problem
		}
		rows = append(rows, []string{c.Name, c.Auth.Type, strings.Join(c.Hosts, ","), strings.Join(c.Methods, ","),
			strings.Join(c.Roles, ","), c.Description, state})
	}
	return t.table("NAME TYPE HOSTS METHODS ROLES DESCRIPTION STATE", rows)
}

func (t *errand) removeConnection() error {
	if _, err := t.c.Do(t.ctx, http.MethodDelete, t.queryReason(connectionPath(t.args[0])), nil); err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.value(map[string]any{"name": t.args[0], "deleted": true})
	}
	return t.out.line("%s: deleted", text.Cell(t.args[0]))
}
