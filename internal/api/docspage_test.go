package api

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// The reference page lists every operation, has no script, and its policy allows only its own style.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	got := newRig(t, nil).ask("GET", "/docs", "")
	page := string(got.body)
	for _, item := range loadDocument(t).Paths.Map() {
		for _, op := range item.Operations() {
			if !strings.Contains(page, `<article id="`+op.OperationID+`">`) {
				t.Errorf("the page lacks %s", op.OperationID)
			}
		}
	}
	if !strings.Contains(page, `{&#34;method&#34;: &#34;add&#34;, &#34;args&#34;: [2, 3]}`) {
		t.Error("the page has no example of a call")
	}
	if bad := regexp.MustCompile(`(?i)<script|<img|<link|javascript:|\son\w+=|\sstyle=`).FindString(page); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)[1]
	sum := sha256.Sum256([]byte(style))
	policy := got.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"';") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy %q is not that of the style", policy)
	}
}
