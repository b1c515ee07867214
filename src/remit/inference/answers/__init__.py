"""What models say, read into text, thoughts, tool calls and token counts."""
