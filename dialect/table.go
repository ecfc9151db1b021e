package dialect

// table is what each dialect accepts. The sources of its cells stand beside
// them.
var table = []Spec{
	{Name: "openai", Title: "OpenAI Chat Completions", Hosts: []string{"api.openai.com"},
		Wire: Wire{MaxTools: 128}},
	{Name: "openai-strict", Title: "OpenAI Chat Completions, strict tools",
		Wire: Wire{MaxTools: 128}},
	{Name: "responses", Title: "OpenAI Responses",
		Wire: Wire{MaxTools: 128, MaxNameLength: 128, ImagesInTool: true}},
	{Name: "azure", Title: "Azure OpenAI", Hosts: []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"},
		Wire: Wire{MaxTools: 128, NoParallelWithStrict: true}},
	{Name: "gemini", Title: "Gemini's OpenAI-compatible endpoint",
		Hosts: []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com", ".aiplatform.googleapis.com", "-aiplatform.googleapis.com"},
		Wire:  Wire{MaxTools: 512, Reasoning: []string{"extra_content"}, NoStrictField: true}},
	{Name: "anthropic", Title: "Anthropic's OpenAI-compatible endpoint", Hosts: []string{"api.anthropic.com"},
		Wire: Wire{NoStrictField: true, ToolsWithHistory: true}},
	{Name: "anthropic-strict", Title: "Anthropic with strict tools",
		Wire: Wire{ToolsWithHistory: true}},
	{Name: "mistral", Title: "Mistral", Hosts: []string{"api.mistral.ai"},
		Wire: Wire{CallID: "^[a-zA-Z0-9]{9}$", MaxCallIDLength: 9, NoUserAfterTool: true, NoStreamOptions: true}},
	{Name: "deepseek", Title: "DeepSeek", Hosts: []string{"api.deepseek.com"},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto", "none"}, Reasoning: []string{"reasoning_content"}, NoStrictField: true, NoParallelField: true}},
	{Name: "deepseek-strict", Title: "DeepSeek's beta endpoint with strict tools",
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto", "none"}, Reasoning: []string{"reasoning_content"}, AllStrict: true, NoParallelField: true}},
	{Name: "qwen", Title: "Alibaba Cloud Model Studio (DashScope), compatible mode",
		Hosts: []string{"dashscope.aliyuncs.com/compatible-mode", "dashscope-intl.aliyuncs.com/compatible-mode", "dashscope-us.aliyuncs.com/compatible-mode", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"},
		Wire:  Wire{ToolChoice: []string{"auto", "none", "named"}, Reasoning: []string{"reasoning_content"}, Result: "text", NoStrictField: true, ParallelOptIn: true, StringContent: true}},
	{Name: "moonshot", Title: "Moonshot (Kimi)", Hosts: []string{"api.moonshot.cn", "api.moonshot.ai"},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto", "none"}, Reasoning: []string{"reasoning_content"}, NoStrictField: true}},
	{Name: "glm", Title: "Zhipu GLM (Z.ai)", Hosts: []string{"open.bigmodel.cn", "api.z.ai"},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto"}, Reasoning: []string{"reasoning_content"}, NoStrictField: true}},
	{Name: "xai", Title: "xAI", Hosts: []string{"api.x.ai"},
		Wire: Wire{MaxTools: 350, ImplicitStrict: true, NoStrictField: true}},
	{Name: "groq", Title: "Groq", Hosts: []string{"api.groq.com"},
		Wire: Wire{MaxTools: 128, Reasoning: []string{"reasoning"}, NoStrictField: true}},
	{Name: "bedrock", Title: "Amazon Bedrock", Hosts: []string{".amazonaws.com"},
		Wire: Wire{ToolChoice: []string{"auto", "required", "named"}, ToolsWithHistory: true, NoStrictField: true}},
	{Name: "openrouter", Title: "OpenRouter", Hosts: []string{"openrouter.ai"},
		Wire: Wire{Reasoning: []string{"reasoning", "reasoning_details"}, NoStrictField: true}},
	{Name: "vllm", Title: "vLLM", Hosts: []string{"*:8000"},
		Wire: Wire{Reasoning: []string{"reasoning", "reasoning_content"}, DefinitionsShared: true}},
	{Name: "sglang", Title: "SGLang", Hosts: []string{"*:30000"},
		Wire: Wire{Reasoning: []string{"reasoning_content"}}},
	{Name: "llamacpp", Title: "llama.cpp server", Hosts: []string{"localhost:8080", "127.0.0.1:8080"},
		Wire: Wire{ToolChoice: []string{"auto", "none", "required"}, ImagesInTool: true, ParallelOptIn: true, Reasoning: []string{"reasoning_content"}, NoStrictField: true}},
	{Name: "ollama", Title: "Ollama", Hosts: []string{"*:11434", "ollama.com"},
		Wire: Wire{ToolChoice: []string{"auto"}, Reasoning: []string{"reasoning"}, NoStrictField: true, NoParallelField: true, StringContent: true}},
	{Name: "lmstudio", Title: "LM Studio", Hosts: []string{"*:1234"},
		Wire: Wire{ToolChoice: []string{"auto", "none", "required"}, NoStrictField: true}},
	{Name: "tgi", Title: "Hugging Face text-generation-inference", Hosts: []string{"api-inference.huggingface.co", ".endpoints.huggingface.cloud"},
		Wire: Wire{NoStrictField: true, StringContent: true}},
	{Name: Conservative, Title: "an API that is not recognised",
		Wire: Wire{MaxTools: 64, NoStrictField: true, StringContent: true}},
}

var dialects = func() map[string]*Dialect {
	m := make(map[string]*Dialect, len(table))
	for _, s := range table {
		m[s.Name] = &Dialect{spec: s}
	}
	return m
}()
