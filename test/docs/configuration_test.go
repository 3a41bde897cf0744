package docs

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/strict"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const configurationPath = "../../docs/configuration.md"

// docs/configuration.md is written from the options struct and from the limits in the code: make docs.
func TestConfigurationDocument(t *testing.T) {
	t.Parallel()
	want := configurationDocument()
	if *rig.Update {
		if err := os.WriteFile(configurationPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(configurationPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/configuration.md is stale; write it with: make docs")
	}
}

func configurationDocument() []byte {
	var b bytes.Buffer
	b.WriteString(`# Configuration

<!-- Written by make docs from the Options of internal/app and internal/cli and the limits in the code. Do not edit. -->

Every setting has a flag, an environment variable and a key in the configuration file. Flags take precedence over the environment, the
environment over the file, the file over the default. Secrets have no flag, because other users can read command lines; use the file
setting. An empty environment variable counts as unset. All settings are checked at start: an invalid one ends the start with exit
status 2 and one line that names the setting and where it came from.

The file is YAML, a flat mapping of setting names. Its path is ` + "`--config` or `RECURGENT_CONFIG`" + `, else
` + "`$XDG_CONFIG_HOME/recurgent/config.yaml` or `~/.config/recurgent/config.yaml`" + ` if it exists. Unknown names are an error.

` + "```yaml" + `
listen: 127.0.0.1:8420
model: gpt-4.1
call-timeout: 10s
fetch-allow:
  - public
  - api.example.org
  - "*.example.net"
` + "```" + `

Budgets, switches, thresholds and retention can be changed while the daemon runs; they are the policy: ` + "`GET` and `PATCH /v1/policy`" + `.

## The daemon

`)
	settingsTable(&b, cli.ServeScope)
	b.WriteString("\n## Client commands\n\n")
	settingsTable(&b, cli.ClientScope)
	b.WriteString(`
Colours are off if ` + "`NO_COLOR`" + ` is set or the output is not a terminal.

## Access tokens

` + "`--auth-tokens-file`" + ` holds one token a line: a name, white space, and the token itself (at least ` + fmt.Sprint(access.MinToken) + ` characters) or ` + "`sha256:`" + `
and its SHA-256 in hex, so that the file need not hold the token; then, where wanted, ` + "`namespace=acme`" + `, ` + "`scopes=read,call,operate,admin`" + `, ` + "`rate=50/s`" + `
and ` + "`concurrency=8`" + `. A line without them has all scopes in the namespace ` + "`default`" + `. Empty lines, lines that begin with ` + "`#`" + ` and a byte order mark are ignored; no name has invisible characters. Clients send
` + "`Authorization: Bearer TOKEN`" + `. The name is the owner of sessions and runners: programs of two owners never share a process.

` + "```" + `
alice  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
ci     c2VjcmV0LXRva2VuLWZvci1jaQ  scopes=read,call
` + "```" + `

The file is looked at each second, and a change that is the same at two looks is in use from then on, without a restart; links that are replaced, as Kubernetes
does it, are followed. SIGHUP has it read at once, where the daemon has no terminal. A file that cannot be used leaves the tokens as they were, and the log names the line.
A token that was removed, or given other rights, is refused from then on; event streams that it opened end within two seconds, calls that it began
are finished.

With ` + "`--oidc-issuer`" + ` and ` + "`--oidc-audience`" + ` tokens of an OpenID Connect issuer (JWTs) are taken, too, with or without a token file:

` + "```" + `
recurgentd serve --listen 0.0.0.0:8420 --tls-cert cert.pem --tls-key key.pem \
  --oidc-issuer https://id.example.org/realms/acme --oidc-audience recurgentd --oidc-namespace-claim team
` + "```" + `

The daemon finds the issuer's keys by OpenID Connect discovery. A token must be signed with one of them (RS, PS, ES or EdDSA), name the audience in ` + "`aud`" + `
and have an ` + "`exp`" + `; ` + "`nbf`" + ` and ` + "`iat`" + ` may be a minute ahead, and a token works up to a minute longer than it says. It acts in the namespace that
` + "`--oidc-namespace-claim`" + ` names, and without one it gets 403. Its scopes are those of ` + "`--oidc-scope-claim`" + ` that the daemon knows. Its owner is the issuer and
the name together: the ` + "`alice`" + ` of the issuer is not the ` + "`alice`" + ` of the file. ` + "`--oidc-rate 50/s`" + ` and ` + "`--oidc-concurrency 8`" + ` hold each
owner of its tokens to what ` + "`rate=`" + ` and ` + "`concurrency=`" + ` of a line do. The keys are fetched again every ten minutes while tokens come, and
when a token is signed with one that is not known: at once, but after eight such fetches, or one that failed, at most every five seconds. While the issuer cannot be reached the daemon starts and runs; tokens whose key is known work, others get
503 ` + "`issuer_unavailable`" + ` with Retry-After.

Without tokens the daemon listens on loopback only and answers only requests whose Host is this machine.

## TLS

` + "`--tls-cert`" + ` and ` + "`--tls-key`" + ` make the daemon speak HTTPS, with HTTP/2, TLS 1.2 and newer, and no plain HTTP. Both files are looked at as the token file is: new connections get the new
certificate, and a pair that does not fit leaves the old one in use. Clients name the daemon as ` + "`RECURGENT_URL=https://...`" + `; a certificate that the system does not trust needs ` + "`--ca-file`" + `.
The name in the URL must be in the certificate, also for ` + "`recurgentd healthcheck`" + `: add ` + "`127.0.0.1`" + ` or ` + "`localhost`" + ` to it, or name another URL. ` + "`recurgentd doctor`" + ` says when it ends, and warns
14 days before and where tokens travel without TLS.

Where a proxy in front ends TLS, or serves the daemon below a path of its own, ` + "`--public-url https://tools.example.com/base`" + ` says where clients find it. The metadata for clients of MCP (RFC 9728), ` + "`resource_metadata`" + `
of 401s, the server in ` + "`/openapi.yaml`" + ` and ` + "`Location`" + ` headers begin with it. What a request says in ` + "`Forwarded`" + ` or ` + "`X-Forwarded-*`" + ` is not believed.

## Limits

Requests over a limit are rejected, or truncated where noted.

| what | limit | over it |
|---|---|---|
`)
	for _, l := range limits() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l[0], l[1], l[2])
	}
	return b.Bytes()
}

func settingsTable(b *bytes.Buffer, in cli.Scope) {
	b.WriteString("| flag and key | environment | value | default | |\n|---|---|---|---|---|\n")
	for _, s := range cli.Settings() {
		if s.Scope != in {
			continue
		}
		name, value := "`--"+s.Name+"`", s.Value
		if s.Secret {
			name = "`" + s.Name + "` (no flag)"
		}
		if value == "" {
			value = "true or false"
		}
		fmt.Fprintf(b, "| %s | `%s` | `%s` | %s | %s |\n", name, s.Env, strings.ReplaceAll(value, "|", "\\|"),
			shown(s.Default), s.Help)
	}
}

func shown(value string) string {
	if strings.Contains(value, " ") {
		return value
	}
	return "`" + value + "`"
}

// shared is a bound that one owner may reach alone.
func shared(bound string) string { return bound + ", and a third more together (`docs/multi-user.md`)" }

// limits is the one table of limits, from the code's own figures.
func limits() [][3]string {
	box, run, model, policy, web := sandbox.DefaultOptions(), env.DefaultOptions(), provider.DefaultOpenAIOptions(),
		agent.DefaultPolicy(), api.DefaultOptions()
	fetches := fetch.DefaultOptions()
	// A cold call at worst: each of its programs may be asked for as often as payloads are asked again, and each of
	// these requests may be tried several times.
	programs := 1 + policy.GuardrailRecoveryBudget + policy.ExecutionRepairBudget + policy.OutcomeRepairBudget
	return [][3]string{
		{"request header", size(app.MaxHeaderBytes), "431"},
		{"request body", size(int(web.MaxBody)), "413 `body_too_large`"},
		{"body of a refused request that is read before the answer", size(4 * int(web.MaxBody)),
			"the answer comes at once, and the connection is closed"},
		{"bodies over 64 KiB of one owner being read, or with calls under way, at once",
			shared(size(int(web.MaxBodies))), "503 `bodies_full`; nothing was done"},
		{"replies of 64 KiB and more of one owner being written at once",
			shared(size(int(web.MaxReplies))) + "; as much waits, at most 5s",
			"503 `replies_full`; the call itself has ended, `GET /v1/calls/{id}` has its outcome"},
		{"a reply, or a stream, whose client reads slowly", "64 KiB in " + web.Stall.String() + "; 10s for an event",
			"the connection is closed"},
		{"nesting of a body", fmt.Sprintf("%d levels", strict.MaxDepth), "400"},
		{"characters of a number", fmt.Sprint(strict.MaxNumber), "400"},
		{"role, method", fmt.Sprintf("%d characters, no slash, no control, bidirectional or zero-width character",
			agent.MaxName), "422"},
		{"items of a list page", "1000 (default 100)", "400 `invalid_parameter`"},
		{"context of a session", size(run.MaxContext),
			"413 `too_large`; a call that grows it beyond ends in `resource_exhausted`"},
		{"a contract; methods of a role with one of their own", fmt.Sprintf("%s; %d", size(contract.MaxTermsBytes),
			contract.MaxMethods), "413 `too_large`"},
		{"`timeout_ms` of a call", fmt.Sprintf("%s (default %s)", run.MaxTimeout, run.CallTimeout),
			"422; the call ends in `timeout`"},
		{"calls of one session that wait", fmt.Sprint(run.MaxQueue), "429 `queue_full`"},
		{"calls of one owner under way or waiting", shared(fmt.Sprint(web.MaxCalls)),
			"429 `queue_full`, before the body is read"},
		{"event streams and downloads of one owner", shared(fmt.Sprint(web.MaxStreams)), "429 `streams_full`"},
		{"requests and calls at once of a token", "`rate=` and `concurrency=` of its line",
			"429 `rate_limited`; calls wait in their order"},
		{"time to read a request's header, whole", fmt.Sprintf("%s, %s", app.ReadHeaderTimeout, app.ReadTimeout),
			"the connection is closed"},
		{"idle connection", app.IdleTimeout.String(), "closed"},
		{"source of a program", size(box.MaxSource), "`invalid_code`"},
		{"value of a call", fmt.Sprintf("%s, %d levels", size(box.MaxValue), box.MaxDepth),
			"`non_serializable_result`"},
		{"changes of a context by one call", size(box.MaxContext), "`resource_exhausted`"},
		{"programs running at once", "`--runners`", "they wait"},
		{"client calls of one owner in runners at once, waiting for host calls included",
			shared("8 a CPU, at least `--runners`"), "they wait"},
		{"warm runners", "as many as fit `--runner-memory`, the limit of descriptors and that of threads",
			"the least recently used runner among those of owners who hold at least the mean is ended"},
		{"blank runners", fmt.Sprintf("none where programs are compiled, else %d; up to 16 more while many are taken",
			box.Blank), "a call waits for one"},
		{"run time of a program",
			"`--call-timeout`; what the daemon does for the program counts, waiting for nested calls and the network does not", "`timeout`"},
		{"memory of a runner", size(int(box.Memory)), "`resource_exhausted`"},
		{"memory of a runner kept warm", size(int(box.IdleMemory())) + " resident", "it is ended"},
		{"threads of a runner", fmt.Sprintf("those of its start, at most %d", sandbox.RunnerTasks),
			"`resource_exhausted`"},
		{"runners at once, where a control group or the user's limit bounds threads",
			fmt.Sprintf("what is left of that limit, less 48 and 2 a CPU, by %d", sandbox.RunnerTasks),
			"client calls wait; a nested call ends in `resource_exhausted`"},
		{"life of a runner", fmt.Sprintf("%d calls, %s, %s of CPU, %s idle", box.RunnerCalls, box.RunnerAge,
			box.RunnerCPU, box.Idle), "replaced"},
		{"host calls of one call", fmt.Sprintf("%d; %s of parameters and answers", box.MaxAsks,
			size(int(box.MaxHostBytes))), "`resource_exhausted`"},
		{"fetches of one run of a program", fmt.Sprintf("%d (policy `fetches_per_call`), each at most %s",
			agent.DefaultPolicy().FetchesPerCall, fetches.Timeout), "an error that the program sees"},
		{"body of a fetch, unpacked and as UTF-8", "`--fetch-max`", "`resource_exhausted`; the program sees it"},
		{"fetched bodies over 1 MiB in the daemon's memory at once", "64 MiB, at least one", "they wait"},
		{"kept answers of fetches that accept them", fmt.Sprintf("%s together, %s each, in memory",
			size(int(fetches.CacheBytes)), size(int(fetches.CacheBytes/8))),
			"the least useful ones go; a larger one is not kept"},
		{"fetches of one owner at once", shared(fmt.Sprint(fetches.Parallel)), "they wait"},
		{"requests to the model of one owner at once", shared(fmt.Sprint(provider.MaxRequests)), "they wait"},
		{"a file; the files of a session, or of an owner outside of sessions; all files",
			fmt.Sprintf("`--file-max`; %s (policy); `--files-max`", size(policy.Retention.SessionFileMiB<<20)),
			"413 `file_too_large`; 429 `file_quota_exceeded`; 507 `files_full`"},
		{"contexts, histories, values, tools and examples of all; of a namespace; of an owner",
			"`--storage-max`, divided; parts of it where there are access tokens, `storage.owner_share` (policy) (`docs/multi-user.md`)", "507 `storage_full`; in a call `resource_exhausted`"},
		{"files that a program has open at once", "16", "an error that the program sees"},
		{"uploads at once; time without a byte of one", "64; " + web.Stall.String(),
			"503 `bodies_full`; 408 `upload_idle`"},
		{"time that files are kept", fmt.Sprintf("%d hours (policy)", policy.Retention.FileHours), "they are deleted"},
		{"effect journal of a call", size(box.MaxJournal), "the call is not replayable"},
		{"depth of nested calls", fmt.Sprintf("%d (policy)", policy.DelegationDepth), "`budget_exceeded`"},
		{"nested calls of a root call", fmt.Sprintf("%d (policy)", policy.NestedCallBudget), "`budget_exceeded`"},
		{"history that a program sees", "the newest 10,000 records or 8 MiB, of the newest 200,000 with nested ones",
			"older ones by `HistoryPage`"},
		{"registry that a program sees", "the best ranked 1,000 tools or 4 MiB", "not shown"},
		{"bytes of a page of a history", "8 MiB, or one record", "the page ends, with `next_cursor`"},
		{"history records in a prompt", fmt.Sprintf("%d (policy)", policy.HistoryPreviewLimit), "not shown"},
		{"known tools in a prompt", fmt.Sprintf("%d (policy)", policy.KnownToolsPromptLimit),
			"the best ranked are shown"},
		{"one model request", "`--provider-timeout`", "`provider`"},
		{"tries of a model request, for 429, 5xx and network faults",
			fmt.Sprintf("%d within %s", model.MaxTries, model.RetryBudget), "`provider`"},
		{"reply of the model", size(int(model.MaxReply)), "`provider`"},
		{"programs asked of the model for one call",
			fmt.Sprintf("%d: the first, %d after a guardrail, %d after a failed run, %d after a refused value (policy); at most 2 more where one fails as the one before it", programs, policy.GuardrailRecoveryBudget, policy.ExecutionRepairBudget, policy.OutcomeRepairBudget), "the last error"},
		{"payloads asked for one program", fmt.Sprintf("%d (policy)", policy.MaxGenerationAttempts), "`invalid_code`"},
		{"model requests of one call, at worst, nested calls apart",
			fmt.Sprintf("%d answered ones, each tried at most %d times", (programs+2)*policy.MaxGenerationAttempts,
				model.MaxTries), ""},
		{"repairs before a program is forged anew", fmt.Sprintf("%d (policy)", policy.MaxRepairsBeforeRegen), "forged"},
		{"generations kept of an artifact", "3, and the healthy one of each of up to 8 recent contracts",
			"the oldest goes"},
		{"values and effects in the call log", fmt.Sprintf("%d hours (policy)", policy.Retention.ValueHours),
			"the entry stays, without them"},
		{"stored results for follow-ups", fmt.Sprintf("%d, %s (policy)", policy.Retention.ContentEntries,
			size(policy.Retention.ContentBytes)), "the least recently used goes"},
		{"clean stop", app.StopTime.String(), "calls under way are canceled and recorded"},
	}
}

func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
