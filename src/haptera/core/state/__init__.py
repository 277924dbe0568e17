"""What is desired and known of each entity, and what one turn works on."""
