package app

import (
	"net/url"
	"path"
	"strconv"
	"strings"
)

// publicURL returns PublicURL without a trailing slash.
func (o *Options) publicURL() string { return strings.TrimSuffix(o.PublicURL, "/") }

// hostCharacters are the characters of host names, addresses and ports.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"

// checkPublicURL refuses a PublicURL with characters that have a meaning in headers or documents, since it is written
// there unescaped.
func (o *Options) checkPublicURL() error {
	if o.PublicURL == "" {
		return nil
	}
	const such = "write it as https://HOST or, where the proxy serves the daemon below a path, https://HOST/PATH, such as https://tools.example.com/base"
	u, err := url.Parse(o.PublicURL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		strings.Trim(u.Host, hostCharacters) != "":
		// do not quote it: it may contain a password
		return refuse("public-url", "is not the address of a server: %s", such)
	case u.User != nil:
		return refuse("public-url", "must have no user and no password: every client is shown it; %s", such)
	case strings.ContainsAny(o.PublicURL, "?#"):
		return refuse("public-url", "must have no query and no fragment: paths are added to it; %s", such)
	case u.EscapedPath() != u.Path || strings.ContainsAny(u.Path, "'()*,;$&+=!@\\") || strings.Contains(u.Path, "//") ||
		u.Path != "" && path.Clean(u.Path) != "/"+strings.Trim(u.Path, "/"):
		return refuse("public-url", "must have a plain path of letters, digits, dots, - and _: %s", such)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return refuse("public-url", "must have a port of 1 to 65535: %s", such)
		}
	}
	return nil
}
