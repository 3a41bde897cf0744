package allow

// These are reasons that several packages share.
const (
	byDaemon   = "Use call.Fetch(url) or call.FetchWith(recurgent.Request{...}): the daemon performs requests."
	noTests    = "A program has no tests; the daemon keeps examples of it."
	noProcess  = "A program does not see its process. Remove it."
	noDatabase = "Programs reach databases through services: call.FetchWith."
	since127   = "Go 1.27 added it, and programs are of Go 1.26."
)

// refused is static data like packages, sorted by path. A package of the standard library is in one of the two lists.
var refused = []Name{
	{"crypto/fips140", "Programs do not set the module that computes. Remove it."},
	{"crypto/mldsa", since127},
	{"crypto/mlkem/mlkemtest", noTests},
	{"crypto/tls", byDaemon},
	{"database/sql", noDatabase}, {"database/sql/driver", noDatabase},
	{"embed", "A program is one file: write the text as a constant."},
	{"encoding/json/jsontext", since127}, {"encoding/json/v2", since127},
	{"expvar", "Write a line to the call's notes: call.Log."},
	{"flag", "Programs have no command line: call.Arg(0, \"name\")."},
	{"go/build", noFiles}, {"go/importer", noFiles},
	{"io/ioutil", "io.ReadAll and io.Discard are in io."},
	{"log/syslog", "log and log/slog write to the call's notes."},
	{"net", "net/netip parses and compares addresses. " + byDaemon},
	{"net/http/cgi", byDaemon}, {"net/http/cookiejar", byDaemon}, {"net/http/fcgi", byDaemon},
	{"net/http/httptest", noTests}, {"net/http/httptrace", byDaemon}, {"net/http/httputil", byDaemon},
	{"net/http/pprof", noProcess},
	{"net/rpc", byDaemon}, {"net/rpc/jsonrpc", byDaemon},
	{"net/smtp", "Mail is sent through the interface of a service: call.FetchWith."},
	{"os/exec", "Programs start no others. call.Tool calls another tool."},
	{"os/signal", noProcess}, {"os/user", noProcess},
	{"plugin", "Write it in the program."},
	{"runtime", noProcess}, {"runtime/cgo", noProcess}, {"runtime/coverage", noProcess}, {"runtime/debug", noProcess},
	{"runtime/metrics", noProcess}, {"runtime/pprof", noProcess}, {"runtime/race", noProcess},
	{"runtime/trace", noProcess},
	{"syscall", "Programs do not call the system. errors.Is compares errors with those of package os and io/fs."},
	{"testing", noTests}, {"testing/cryptotest", noTests}, {"testing/fstest", noTests}, {"testing/iotest", noTests},
	{"testing/quick", noTests}, {"testing/slogtest", noTests}, {"testing/synctest", noTests},
	{"unsafe", "Use encoding/binary or math.Float64bits."},
	{"uuid", since127 + " crypto/rand.Text returns a random name."},
	{"weak", "What the collector of memory frees would differ between runs. Keep a map."},
}
