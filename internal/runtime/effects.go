package runtime

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// noteReach counts and logs what the run reached, or tried to reach, beyond the manifest of its method.
func (rec *recovery) noteReach(j *judge.Judged) {
	rec.countWrites(j.Result.Effects.Fetches)
	if rec.Artifact == nil || rec.Artifact.Manifest == nil || !j.Touched() {
		return
	}
	lacks, denied := rec.Artifact.Manifest.Lacks(j.EffectsOfRun()), agent.Effects{}
	if j.Guard != nil {
		denied = j.Guard.Denied
	}
	for _, x := range []struct {
		what   agent.Effects
		result string
	}{{lacks, telemetry.EffectObserved}, {denied, telemetry.EffectDenied}} {
		if x.what.Empty() {
			continue
		}
		rec.Env.Metrics.BeyondManifest(len(x.what.Hosts), len(x.what.Methods), len(x.what.Tools), x.result)
		rec.Env.Logger.Warn().Str("call_id", rec.ID).Str("role", rec.Role).Str("method", rec.Method).Str("generation",
			j.Program.ID).Str("result", x.result).
			Strs("hosts", x.what.Hosts).Strs("methods", x.what.Methods).Strs("tools",
			x.what.Tools).Msg("a program reached beyond its effects manifest")
	}
	beyond := lacks.With(&denied)
	if !beyond.Empty() {
		all := beyond
		if rec.beyond != nil {
			all = rec.beyond.With(&beyond)
		}
		rec.beyond = &all
	}
}

// countWrites counts the writing requests of a run by their result.
func (rec *recovery) countWrites(fetches []sandbox.Fetch) {
	for i := range fetches {
		switch f := &fetches[i]; {
		case !f.Write:
		case f.Mode == fetch.ModeRecorded:
			rec.Env.Metrics.Write(telemetry.WriteRepeated)
		case !f.Sent && f.ErrorKind == fetch.KindDenied:
			rec.Env.Metrics.Write(telemetry.WriteDenied)
		case !f.Sent:
			rec.Env.Metrics.Write(telemetry.WriteFailed)
		case f.Status == 0:
			rec.Env.Metrics.Write(telemetry.WriteUnknown)
		default:
			rec.Env.Metrics.Write(telemetry.WriteSent)
		}
	}
}
