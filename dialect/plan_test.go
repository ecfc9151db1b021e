package dialect

import (
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

func TestForHost(t *testing.T) {
	for url, want := range map[string]string{
		"https://api.openai.com/v1":                                 "openai",
		"https://acme.openai.azure.com/openai/deployments/x":        "azure",
		"https://generativelanguage.googleapis.com/v1beta/openai/":  "gemini",
		"https://api.deepseek.com":                                  "deepseek",
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1":    "qwen",
		"http://localhost:11434/v1":                                 "ollama",
		"http://gpu-3:8000/v1":                                      "vllm",
		"https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1": "bedrock",
		"https://api.openai.com.evil.example/v1":                    "conservative",
		"https://llm.example.com/v1":                                "conservative",
		"::::":                                                      "conservative",
	} {
		if got := ForHost(url).Name(); got != want {
			t.Errorf("ForHost(%s) = %s, want %s", url, got, want)
		}
	}
	if n := len(Names()); n != 24 {
		t.Errorf("%d dialects, want 24", n)
	}
}

func TestDecodeTellsWhatIsMissing(t *testing.T) {
	d, err := For("openai")
	if err != nil {
		t.Fatal(err)
	}
	plan, problem := d.Plan(dragoman.Tool{Name: "weather", InputSchema: []byte(
		`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`)})
	if problem != nil {
		t.Fatal(problem)
	}
	_, _, problem = plan.Decode(`{"days":[]}`, "tool_calls")
	if problem == nil || problem.Code != dragoman.CodeInvalidArguments || len(problem.Fields) != 2 {
		t.Fatalf("problem %+v", problem)
	}
	if f := problem.Fields[0]; f.Path != "/city" || !f.Missing || f.Expected != "string" {
		t.Errorf("first field %+v", f)
	}
	if f := problem.Fields[1]; f.Path != "/days" || f.Missing || f.Expected != "integer" {
		t.Errorf("second field %+v", f)
	}
	if _, _, problem = plan.Decode(`{"city":"To`, "tool_calls"); problem == nil || problem.Code != dragoman.CodeTruncated {
		t.Errorf("cut-off arguments gave %v", problem)
	}
	if _, _, problem = plan.Decode(``, "length"); problem == nil || problem.Code != dragoman.CodeTruncated {
		t.Errorf("empty arguments at the length limit gave %v", problem)
	}
}
