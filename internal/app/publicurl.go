package app

import (
	"net/url"
	"path"
	"strconv"
	"strings"
)

// publicURL is PublicURL without a slash at its end.
func (o *Options) publicURL() string { return strings.TrimSuffix(o.PublicURL, "/") }

// hostCharacters are those of host names, addresses and ports.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"

// checkPublicURL refuses what cannot begin an address. It stands in headers and documents as it is, so that it must consist of characters that mean nothing there.
func (o *Options) checkPublicURL() error {
	if o.PublicURL == "" {
		return nil
	}
	const such = "write it as https://HOST or, where the proxy serves the daemon below a path, https://HOST/PATH, such as https://tools.example.com/base"
	u, err := url.Parse(o.PublicURL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		strings.Trim(u.Host, hostCharacters) != "":
		return refuse("public-url", "is not the address of a server: %s", such) // which may hold a password
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
