"""What tests share: conversations, servers, strategies with any options."""
