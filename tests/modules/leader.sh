# Speaks with its replica's socket by standard input and output; writes down each frame, and acts
# once each time that it comes to lead.
id=0
while read -r line; do
    echo "$line" >>said
    case $line in
        *'"op":"leads"'*) id=$((id + 1)) && echo "{\"op\": \"act\", \"id\": $id}" ;;
        *'"op":"acting"'*) echo "{\"op\": \"done\", \"id\": $id}" ;;
    esac
done
