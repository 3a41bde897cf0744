package rewrite

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow/walk"
)

// Every function of the standard library that programs can use stays within the process and the run, or there is a
// decision about it: it is replaced, or package allow lists it. A later release of Go may add functions that need one.
func TestEveryNameIsDecided(t *testing.T) {
	t.Parallel()
	std, err := walk.Load()
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, p := range allow.Packages() {
		if std.Packages[p.Path] == nil {
			continue // ours
		}
		known := map[string]bool{}
		for _, o := range walk.Names(std.Packages[p.Path]) {
			name := strings.TrimPrefix(walk.Name(o), p.Path+".")
			known[name] = true
			first, _, _ := strings.Cut(name, ".")
			if !p.Shows(first) || !p.Shows(name) {
				continue
			}
			names++
			for sink, path := range std.Reaches(o) {
				if why := undecided(p, name, o, sink); why != "" {
					t.Errorf("%s.%s %s: %s", p.Path, name, why, path)
				}
			}
		}
		for _, name := range slices.Concat(hidden(p), p.Varies, p.Changes, p.Denied) {
			if !known[name] && !slices.Contains(p.Useless, name) {
				t.Errorf("%s has no %s", p.Path, name)
			}
		}
	}
	if names < 3000 {
		t.Errorf("the walk has looked at %d names", names)
	}
}

func hidden(p allow.Package) (names []string) {
	for _, n := range p.Hidden {
		names = append(names, n.Name)
	}
	return names
}

// undecided returns why a name needs a decision, or "" if there is one.
func undecided(p allow.Package, name string, o types.Object, sink walk.Sink) string {
	full := p.Path + "." + name
	if replacement(p.Path, name, o) != "" || methods[full] != "" || p.Path == "hash/maphash" {
		return ""
	}
	variable, state := strings.CutPrefix(string(sink), string(walk.State))
	switch {
	case state:
		if !slices.Contains(p.Changes, name) && !slices.Contains(caches, variable) {
			return "changes " + variable
		}
	case sink == walk.Outside:
		if !slices.Contains(p.Denied, name) {
			return "reaches outside of the process"
		}
	case sink == walk.Goroutine || sink == walk.Timer:
		return "starts something"
	case sink == walk.Clock || sink == walk.Random:
		if !slices.Contains(p.Varies, name) && !slices.ContainsFunc(steady, func(s string) bool {
			begin, open := strings.CutSuffix(s, "*")
			return s == full || open && strings.HasPrefix(full, begin)
		}) {
			return "depends on the " + string(sink)
		}
	}
	return ""
}

// steady are names that reach the clock or randomness without showing it, each for its reason.
var steady = []string{
	// They make curves, or keys of these, and only GenerateKey draws.
	"crypto/ecdh.*", "crypto/ecdsa.PrivateKey.ECDH", "crypto/ecdsa.PublicKey.ECDH", "crypto/hpke.*", "crypto/x509.*",
	// The time of a line is printed if the flags say so, whose names count.
	"log.*",
	// A record gets the time of the run (package logs), and the default logger prints none.
	"log/slog.*",
	// The boundary comes from crypto/rand.Reader, which is the run's (package random).
	"mime/multipart.NewWriter",
	// The zone in use now is kept for later.
	"time.LoadLocationFromTZData",
}

// caches are package variables whose changes no program sees: they keep what would be computed again.
var caches = []string{
	"crypto/des.feistelBox", "crypto/elliptic.p224", "crypto/elliptic.p256", "crypto/elliptic.p384",
	"crypto/elliptic.p521", "crypto/x509.systemRoots", "crypto/x509.systemRootsErr", "encoding/binary.structSize",
	// The numbers of types show in what Encode writes, which counts.
	"encoding/gob.idToTypeSlice", "encoding/gob.typeInfoMap", "encoding/gob.types", "encoding/gob.userTypeCache",
	"encoding/json.encoderCache", "encoding/json.fieldCache", "encoding/json/v2.lookupArshalerCache", "encoding/xml.tinfoMap", "go/types.lastID",
	"hash/crc32.archIeeeTable8", "hash/crc32.castagnoliSSE42TableK1", "hash/crc32.castagnoliSSE42TableK2",
	"hash/crc32.castagnoliTable", "hash/crc32.castagnoliTable8", "hash/crc32.haveCastagnoli", "hash/crc32.ieeeTable8",
	"hash/crc32.updateCastagnoli", "hash/crc32.updateIEEE", "hash/crc64.slicing8TableECMA",
	"hash/crc64.slicing8TableISO", "internal/abi.escapeSink", "math/big.threeOnce", "net/textproto.commonHeader",
	"reflect.dummy", "reflect.funcLookupCache", "reflect.funcTypes", "reflect.layoutCache", "reflect.lookupCache",
	"reflect.pinAIXGCData", "reflect.ptrMap", "reflect.structLookupCache", "regexp/syntax.aliases",
	"regexp/syntax.categoryAliases", "time.unnamedFixedZones",
	// Each run begins with the default loggers (package logs).
	"log.std", "log/slog.defaultLogger", "log/slog.logLoggerLevel",
	// Names of users and groups, which the kernel does not let it read.
	"archive/tar.groupMap", "archive/tar.userMap", "os/user.cache", "syscall.env", "syscall.envs",
}
